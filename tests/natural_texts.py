"""Natural sentences for tests that convert text to tokens and back."""

from nezha_tf import FullTokenizer, Vocabulary

NATURAL = (
    "早上六点半，闹钟准时响了。",
    "苹果公司昨天发布了iPhone 6s Plus手机，售价5,288元起。",
    "《The New York Times》报道了这件事。",
    "我们用Python写程序，用C++做实验。",
    "世界卫生组织(WHO)说，病例增长了3.5%左右。",
    "请访问www.example.com，或者写信到abc@example.com。",
    "他说：“Hello, world!”然后就走了。",
    "会议在07:30开始，I'll be there。",
    "Wi-Fi和TCP/IP是什么？",
    '他唱的是"Let it be"。',
    "The price is $5 (about 35 yuan), isn't it?",
    "R&D部门在2021-08-15提交了报告。",
    "气温12℃，湿度40%。",
    "第1章：Introduction to Machine Learning",
    "你好,世界!",
    "Mr. Bean又来了……",
)


def cased_tokenizer():
    """Returns a tokenizer that keeps case and knows each character of the sentences."""
    characters = sorted(set("".join(NATURAL)) - {" "})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    tokens += [f"##{char}" for char in characters]
    return FullTokenizer(vocabulary=Vocabulary(tokens), do_lower_case=False)

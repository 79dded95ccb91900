"""What the page itself says: its words in English and Chinese, and the texts that it proposes."""

from nezha_tf.util import language

# What the tabs propose. The package's own model fills blanks, writes and goes on from a text, and
# has read old stories and poems most of all. To write means to it: to put sentences in their order.
TEXT = "今天的豆浆是新磨的，趁热喝。"
PASSAGE = "西红柿炒鸡蛋是一道家常菜。准备材料：西红柿2个、鸡蛋3个、小葱1根、盐和白糖适量。"
QUESTION = "要准备几个鸡蛋？"
CHOICES = "2个\n3个\n5个"
IDIOM_TEXT = "雨#idiom#，下个不停。"
IDIOMS = "绵绵不断\n画蛇添足\n一日千里"
BLANKS = "皇帝派使者前[MASK]京城。"
NEWS = "李小明昨天从北京飞往上海，参加复旦大学的毕业典礼。"
SOURCE = "皇帝听说后很高兴。使者回到京城，把这件事报告给皇帝。"
PROMPT = "五言绝句《春》"

# The Chinese of the labels: single words, whose meaning depends on the place.
CHINESE = {
    # tabs
    "Classification": "分类",
    "Entities": "命名实体",
    "Reading comprehension": "阅读理解",
    "Multiple choice": "多项选择",
    "Fill in": "填空",
    "Writing": "生成",
    "Continuation": "续写",
    "Attention": "注意力",
    # boxes
    "Model": "模型",
    "Text": "文本",
    "Second text": "第二段文本",
    "Second text (may be empty)": "第二段文本（可不填）",
    "Question": "问题",
    "Passage": "篇章",
    "Text; where the model fills blanks, with #idiom# for the blank": (
        "文本；如果模型用来填空，空处写 #idiom#"
    ),
    "Choices, one in a line": "选项，每行一个",
    "Text with [MASK] for each token to fill in": "文本，每个要填的 token 写一个 [MASK]",
    "Source": "源文本",
    "Prompt": "提示（续写的开头）",
    "Layers, as 0,3: 0 is the first, -1 the last; empty: all": (
        "层，如 0,3：0 是第一层，-1 是最后一层；不填表示全部"
    ),
    "Heads, as 0,3: 0 is the first, -1 the last; empty: all": (
        "注意力头，如 0,3：0 是第一个，-1 是最后一个；不填表示全部"
    ),
    # buttons
    "Classify": "分类",
    "Find entities": "找出实体",
    "Answer": "回答",
    "Choose": "选择",
    "Write": "生成",
    "Continue": "续写",
    "Draw": "画图",
    # results
    "label": "标签",
    "text": "文本",
    "from": "起",
    "to": "止",
    "probability": "概率",
    "answer": "答案",
    "score": "分数",
    "(none)": "（无答案）",
    "none": "无",
    "predicted": "预测",
}


def shown(text):
    """Returns something that the page says, given in English, in the language of the screen.

    What is no label is a message, whose Chinese is in the catalogue of all programs.
    """
    if language.current() == language.ENGLISH:
        return text
    return CHINESE.get(text) or language.translated(text)

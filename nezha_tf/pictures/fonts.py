"""Fonts that have the characters of a text, Chinese ones above all."""

import os

from nezha_tf.errors import UserError

# Families that Chinese text reads well in, where several have its characters.
_PREFERRED = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "SimHei",
    "Noto Sans CJK JP",
)


def require_matplotlib():
    """Raises a `UserError` where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError(
            "pictures are drawn with matplotlib: pip install -e '.[plot]' in the clone"
        ) from error


def font_families(text):
    """Returns the fonts to write a text with, the usual one first; None where there is none."""
    families, missing = find_fonts(text)
    return None if missing else families


def find_fonts(text):
    """Looks for a font that has what the usual one lacks of a text.

    Returns:
      (families for matplotlib, the usual one first; characters of the text that none of them has).
    """
    from matplotlib import font_manager

    usual = font_manager.FontProperties()
    missing = {ord(char) for char in text if not char.isspace()}
    missing -= _characters(font_manager.findfont(usual))
    families = list(usual.get_family())
    if not missing:
        return families, set()
    fonts = sorted(font_manager.fontManager.ttflist, key=_rank)
    found, left = _best(fonts, missing)
    if left:
        # matplotlib lists the fonts of a machine once, and keeps the list when others come.
        found, left = _best([*fonts, *_new_fonts()], missing)
    if found:
        families.append(found)
    return families, {chr(code) for code in left}


def labels(pieces):
    """Makes pieces drawable: one with a character that no font has becomes its code points.

    Args:
      pieces: strings.

    Returns:
      (labels; text properties of matplotlib for them; a line for the user, or "").
    """
    families, missing = find_fonts("".join(pieces))
    drawn = [_code_points(piece) if missing & set(piece) else piece for piece in pieces]
    # A "$" is a piece, not the begin of a formula.
    style = {"family": families, "parse_math": False}
    if not missing:
        return drawn, style, ""
    some = "".join(sorted(missing)[:5])
    return (
        drawn,
        style,
        f"no font here has {some!r}, so such pieces are drawn as code points (U+4E2D); install a "
        "Chinese font, such as fonts-noto-cjk of Debian",
    )


def _best(fonts, needed):
    """Returns (the first family that lacks least of the code points or None, what it lacks)."""
    best, left = None, needed
    for font in fonts:
        lacks = needed - _characters(font.fname)
        if len(lacks) < len(left):
            best, left = font.name, lacks
        if not left:
            break
    return best, left


def _rank(font):
    """Sorts preferred families first, and the last resort, a box for every character, away."""
    return _PREFERRED.index(font.name) if font.name in _PREFERRED else len(_PREFERRED)


def _new_fonts():
    """Makes fonts known that were installed after matplotlib made its list; returns them."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {os.path.realpath(font.fname) for font in manager.ttflist}
    before = len(manager.ttflist)
    for path in font_manager.findSystemFonts():
        if os.path.realpath(path) not in known:
            try:
                manager.addfont(path)
            except (OSError, RuntimeError):  # not a font that it can read
                continue
    return sorted(manager.ttflist[before:], key=_rank)


def _characters(path):
    """Returns the code points that a font file has."""
    from matplotlib.ft2font import FT2Font

    # The last resort has a box for every character.
    if "LastResort" in os.path.basename(path):
        return set()
    return set(FT2Font(path).get_charmap())


def _code_points(piece):
    return " ".join(f"U+{ord(char):04X}" for char in piece.removeprefix("##"))

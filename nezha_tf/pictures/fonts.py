"""Finds fonts that have the characters of a text, mainly Chinese characters."""

import os

from nezha_tf.util.errors import require_modules
from nezha_tf.util.language import translated

# Families that are preferred if several have the characters of a text.
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
    """Raises `UserError` if matplotlib is not installed."""
    require_modules("pictures need matplotlib", "plot", "matplotlib")


def font_families(text):
    """Returns the font families for a text, the default first; None if they lack a character."""
    families, missing = find_fonts(text)
    return None if missing else families


def find_fonts(text):
    """Returns (font families for a text, the default first; set of the characters they lack)."""
    from matplotlib import font_manager

    usual = font_manager.FontProperties()
    missing = {ord(char) for char in text if not char.isspace()}
    missing -= _characters(font_manager.findfont(usual))
    families = list(usual.get_family())
    if not missing:
        return families, set()
    fonts = sorted(font_manager.fontManager.ttflist, key=_rank)
    family, left = _best(fonts, missing)
    if left:
        # matplotlib keeps its list of fonts; it does not have fonts that were installed later.
        family, left = _best([*fonts, *_new_fonts()], missing)
    if family:
        families.append(family)
    return families, {chr(code) for code in left}


def labels(tokens):
    """Returns labels for tokens; a token that no font can draw becomes its code points (U+4E2D).

    Returns:
      (list of labels; dict of matplotlib's text properties for them; a line for the user, or "").
    """
    families, missing = find_fonts("".join(tokens))
    drawn = [
        " ".join(f"U+{ord(char):04X}" for char in token.removeprefix("##"))
        if missing & set(token)
        else token
        for token in tokens
    ]
    note = missing and (
        f"no installed font has {''.join(sorted(missing)[:5])!r}, so tokens with such characters "
        "are drawn as code points (U+4E2D); install a Chinese font, such as fonts-noto-cjk of "
        "Debian"
    )
    # matplotlib must not read a "$" as the beginning of a formula.
    return drawn, {"family": families, "parse_math": False}, note or ""


def caption(text):
    """Returns a message for a picture, and matplotlib's text properties for it.

    It is in the language of the screen if a font has its characters, or else in English.
    """
    shown = translated(text)
    families = shown != text and font_families(shown)
    return (shown, {"family": families}) if families else (text, {})


def _best(fonts, needed):
    """Returns (the first family that lacks the fewest code points, or None; what it lacks)."""
    best, left = None, needed
    for font in fonts:
        lacks = needed - _characters(font.fname)
        if len(lacks) < len(left):
            best, left = font.name, lacks
        if not left:
            break
    return best, left


def _rank(font):
    return _PREFERRED.index(font.name) if font.name in _PREFERRED else len(_PREFERRED)


def _new_fonts():
    """Adds fonts to matplotlib's list that were installed after it was made; returns them."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {os.path.realpath(font.fname) for font in manager.ttflist}
    before = len(manager.ttflist)
    for path in font_manager.findSystemFonts():
        if os.path.realpath(path) not in known:
            try:
                manager.addfont(path)
            except (OSError, RuntimeError):  # a font that matplotlib cannot read
                continue
    return sorted(manager.ttflist[before:], key=_rank)


def _characters(path):
    """Returns the code points that a font file has."""
    from matplotlib.ft2font import FT2Font

    # The font "Last Resort" draws every character as a box.
    if "LastResort" in os.path.basename(path):
        return set()
    return set(FT2Font(path).get_charmap())

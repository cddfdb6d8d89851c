"""Names of all scripts in Latin letters, so that "Москва" meets "Moskva" and "北京" meets "Beijing".

Letter by letter and without regard to the language: near enough for comparing pieces of names, no romanisation to
print. The library anyascii has the tables. It sees one letter at a time, so what two letters make together is done
here: Greek pairs that sound as one (by the standard ELOT 743), and small Japanese kana.
"""

from __future__ import annotations

import re
import unicodedata

from anyascii import anyascii

# A Greek vowel with a diaeresis is no part of a pair, so it becomes Latin first; other accents go. So do the Cyrillic
# signs, which anyascii writes as apostrophes: these would cut a word in two.
_FIRST = str.maketrans("ϊϋΐΰάέήίόύώ", "iyiyαεηιουω", "ъь")
_GREEK_PAIRS = (
    (re.compile("ου"), "ou"),
    (re.compile("([αεη])υ(?=[θκξπσςτφχψ]|\\b)"), "\\1f"),
    (re.compile("([αεη])υ"), "\\1v"),
    (re.compile("\\bμπ|μπ\\b"), "b"),
    (re.compile("γγ"), "ng"),
    (re.compile("γξ"), "nx"),
    (re.compile("γχ"), "nch"),
)
_SMALL_KANA = re.compile("([ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ])")
_SMALL_SOUNDS = (
    (re.compile("(sh|ch|j)i\x00y"), "\\1"),  # "shiya" with a small ya is "sha"
    (re.compile("i\x00y"), "y"),  # "kiya" is "kya"
    (re.compile("[aiueo]\x00([aiueo])"), "\\1"),  # "chie" is "che"
    # A small tsu doubles what follows.
    (re.compile("\x00t([a-z])"), "\\1\\1"),
    (re.compile("\x00"), ""),
)


def transliterate(name: str) -> str:
    """The name in small ASCII letters. Many names at once may have line breaks between them.

    >>> transliterate("Нижний Новгород"), transliterate("Ευρώπη"), transliterate("서울"), transliterate("東京")
    ('nizhniy novgorod', 'evropi', 'seoul', 'dongjing')
    """
    if name.isascii():
        return name.lower()
    text = unicodedata.normalize("NFC", name.lower()).translate(_FIRST)
    for pattern, latin in _GREEK_PAIRS:
        text = pattern.sub(latin, text)
    text = _SMALL_KANA.sub("\x00\\1", text.replace("ー", ""))
    # Line by line: a separator of lines or paragraphs becomes a line break, and there must be no more of these.
    text = "\n".join(anyascii(line).replace("\n", " ") for line in text.split("\n")).lower()
    for pattern, latin in _SMALL_SOUNDS:
        text = pattern.sub(latin, text)
    return text

"""Names of other scripts in Latin letters, so that "Москва" meets "Moskva" and "Αθήνα" meets "Athina".

Letter by letter and without regard to the language: near enough for comparing pieces of names, no romanisation to
print. Cyrillic follows the habits of English texts, Greek the standard ELOT 743. Korean syllables and Japanese kana
carry their sounds in their Unicode names. Letters of the Latin script that are no letter plus accent ("ł", "ø") get
their nearest plain ones. Other scripts are left as they are.
"""

from __future__ import annotations

import re
import unicodedata

_CYRILLIC = (
    "а a б b в v г g д d е e ж zh з z и i к k л l м m н n о o п p р r с s т t у u ф f х kh ц ts ч ch ш sh щ shch "
    "ъ - ы y ь - э e ю yu я ya ѐ e ё yo й y ѝ i і i ї yi є ye ґ g ў u ђ dj ѓ g ѕ dz ј j љ lj њ nj ћ c ќ k џ dz "
    "ә a ғ g қ q ң ng ө o ү u ұ u һ h җ zh ҙ z ҡ q ҫ s ҳ h ҷ j ѣ e ѳ f ѵ i"
)
_GREEK = (
    "α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ y φ f χ ch ψ ps ω o "
    "ϊ i ϋ y ΐ i ΰ y"
)
_LATIN = "ß ss æ ae œ oe ø o ł l đ d ð d þ th ı i ħ h ŋ ng ŧ t ƒ f ə a ĸ k ſ s"

# Two Greek letters that sound as one; the rest of the word decides for some. Marks are gone by then.
_GREEK_PAIRS = (
    (re.compile("ου"), "ou"),
    (re.compile("([αεη])υ(?=[θκξπσςτφχψ]|\\b)"), "\\1f"),
    (re.compile("([αεη])υ"), "\\1v"),
    (re.compile("\\bμπ|μπ\\b"), "b"),
    (re.compile("γγ"), "ng"),
    (re.compile("γξ"), "nx"),
    (re.compile("γχ"), "nch"),
)
_KANA = re.compile("(?:HIRAGANA|KATAKANA) LETTER (?:SMALL )?([A-Z]+)")
_SYLLABLE = "HANGUL SYLLABLE "
# "kiya" with a small ya is "kya", "shiya" is "sha", "chie" is "che"; a small tsu doubles what follows.
_SMALL = (
    (re.compile("(sh|ch|j)i\x00y"), "\\1"),
    (re.compile("i\x00y"), "y"),
    (re.compile("[aiueo]\x00([aiueo])"), "\\1"),
    (re.compile("\x00tsu([a-z])"), "\\1\\1"),
    (re.compile("[\x00ー]"), ""),
)
_JAPANESE_SOUNDS = {"si": "shi", "ti": "chi", "tu": "tsu", "hu": "fu", "zi": "ji", "di": "ji", "du": "zu"}


def _table(text: str) -> dict[int, str]:
    """Letter -> Latin letters; "-" stands for none."""
    pairs = text.split()
    return {ord(letter): latin.strip("-") for letter, latin in zip(pairs[::2], pairs[1::2], strict=True)}


_ALL = _table(_CYRILLIC) | _table(_GREEK) | _table(_LATIN)
# Letters that would become others if marks were simply taken off: й is no и, and a Greek vowel with a diaeresis is no
# part of a pair.
_MARKED = {point: latin for point, latin in _ALL.items() if unicodedata.normalize("NFD", chr(point)) != chr(point)}


def transliterate(name: str) -> str:
    """The name in small letters without marks, those of other scripts in Latin ones.

    Many names at once, with line breaks between them, take far less time than one by one.

    >>> transliterate("Нижний Новгород"), transliterate("Ευρώπη"), transliterate("서울"), transliterate("Łódź")
    ('nizhniy novgorod', 'evropi', 'seoul', 'lodz')
    """
    if name.isascii():
        return name.lower()
    text = unicodedata.normalize("NFC", name.lower()).translate(_MARKED)
    text = text.translate({ord(character): _spell(character) for character in set(text)})
    text = unicodedata.normalize("NFD", text)
    text = text.translate({ord(mark): None for mark in set(text) if unicodedata.combining(mark)})
    for pattern, latin in (*_SMALL, *_GREEK_PAIRS):
        text = pattern.sub(latin, text)
    return text.translate(_ALL)


def _spell(character: str) -> str:
    """A Korean syllable or Japanese kana by its sound, any other character as it is."""
    if not "\u3040" <= character <= "\ud7ff":
        return character
    name = unicodedata.name(character, "")
    if name.startswith(_SYLLABLE):
        return name[len(_SYLLABLE) :].lower()
    kana = _KANA.fullmatch(name)
    if kana is None:
        return character
    sound = kana[1].lower()
    return ("\x00" if "SMALL" in name else "") + _JAPANESE_SOUNDS.get(sound, sound)

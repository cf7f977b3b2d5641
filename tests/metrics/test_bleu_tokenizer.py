"""BLEU's tokeniser follows the target language, and all scores equal those of sacrebleu's command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu.tokenizers.tokenizer_ja_mecab
import sacrebleu.tokenizers.tokenizer_ko_mecab
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from tiny_model import tiny_tokenizers

from dragoman.base.errors import ConfigError
from dragoman.inference.translation.reranking.minimum_risk import MinimumRisk
from dragoman.inference.translation.result import Translation
from dragoman.metrics.bleu import BLEU, bleu_by_length
from dragoman.metrics.bleu_tokenizer import TOKENIZERS, check_tokenizer, choose_tokenizer
from dragoman.metrics.bootstrap import paired_bootstrap
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.lecture_bleu import LectureBLEU
from dragoman.metrics.metric import Metric
from dragoman.metrics.moses_bleu import TokenisedBLEU
from dragoman.metrics.registry import ngram_metrics
from dragoman.metrics.ter import TER
from dragoman.metrics.text_score import TextScore
from dragoman.tasks.translation.objectives.sequence_reward import sentence_rewards

TEXTS = {
    "zh": (["他昨天去公园散步了。", "我们明天要去 New York。"], ["他昨天去公园跑步了。", "我们后天要去 New York。"]),
    "ja": (
        ["彼は昨日、公園を散歩した。", "猫がソファーで寝ている。"],
        ["彼は昨日、公園を走った。", "犬がソファーで寝ている。"],
    ),
    "ko": (
        ["그는 어제 공원에서 산책했다.", "고양이가 소파에서 잔다."],
        ["그는 어제 공원에서 뛰었다.", "개가 소파에서 잔다."],
    ),
    "th": (["เขาไปเดินเล่นในสวนเมื่อวานนี้", "แมวนอนบนโซฟา"], ["เขาไปวิ่งในสวนเมื่อวานนี้", "หมานอนบนโซฟา"]),
    "my": (["သူ မနေ့က ပန်းခြံမှာ လမ်းလျှောက်တယ်။", "ကြောင်က အိပ်နေတယ်။"], ["သူ မနေ့က ပန်းခြံမှာ ပြေးတယ်။", "ခွေးက အိပ်နေတယ်။"]),
    "hi": (
        ["वह कल पार्क में टहलने गया था।", "बिल्ली सोफे पर सो रही है।"],
        ["वह कल पार्क में दौड़ने गया था।", "कुत्ता सोफे पर सो रहा है।"],
    ),
    "de": (
        ["Er ging gestern im Park spazieren.", "Die Katze schläft."],
        ["Er lief gestern im Park.", "Der Hund schläft."],
    ),
}
TOKENIZER = tiny_tokenizers().target
EXPECTED = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "th": "char", "my": "char", "hi": "13a", "de": "13a"}


def test_the_names_are_sacrebleus() -> None:
    assert set(TOKENIZERS) == set(SacreBLEU.TOKENIZERS) - {"spm", "spBLEU-1K"}  # a deprecated alias, a third-party file


@pytest.mark.parametrize("language", TEXTS)
def test_scores_equal_those_of_sacrebleus_command(language: str, tmp_path: Path) -> None:
    lines, reference = TEXTS[language]
    name = choose_tokenizer(language, [reference]).name
    assert name == EXPECTED[language]
    (tmp_path / "ref").write_text("\n".join(reference) + "\n", encoding="utf-8")
    (tmp_path / "hyp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(tmp_path / "ref"),
        "-i",
        str(tmp_path / "hyp"),
        "-tok",
        name,
        "-m",
        "bleu",
        "chrf",
        "ter",
    ]
    if language in ("zh", "ja"):
        command += ["--ter-normalized", "--ter-asian-support"]
    output = subprocess.run([*command, "-w", "4"], capture_output=True, check=True).stdout
    printed = {each["name"]: each for each in json.loads(output)}
    metrics: list[Metric] = [BLEU(tokenizer=name), ChrF()]
    if name != "char":
        metrics.append(TER(name))
    for metric in metrics:
        score = metric.score(lines, reference)
        assert round(score.value, 4) == printed[metric.name]["score"]
        assert score.signature == printed[metric.name]["signature"]
    bleu = metrics[0].score(lines, reference).value
    assert 0 < bleu < metrics[0].score(reference, reference).value == pytest.approx(100)


@pytest.mark.parametrize("code", ["zh-Hant", "yue", "zho", "cmn", "zh_TW", "zho_Hans"])
def test_codes_of_chinese(code: str) -> None:
    assert choose_tokenizer(code, []).name == "zh"


@pytest.mark.parametrize("code", "lo km bo dz lao khm_Khmr shn".split())
def test_languages_without_a_tokeniser_are_measured_by_characters_and_this_is_said(code: str) -> None:
    choice = choose_tokenizer(code, [])
    assert choice.name == "char" and not choice.is_warning
    assert choice.note.startswith(f"sacreBLEU has no tokeniser for the language {code}")


@pytest.mark.parametrize("code", "en ru vi ar he hi am ka ja-Latn zh-Latn tr".split())
def test_languages_with_spaces_keep_13a(code: str) -> None:
    assert choose_tokenizer(code, [["A line."]]) == choose_tokenizer(None, [["A line."]])
    assert choose_tokenizer(code, [["A line."]]).name == "13a"


@pytest.mark.parametrize(("code", "extra"), [("ja", "ja"), ("kor_Hang", "ko")])
def test_without_mecab_characters_are_counted_and_the_remedy_is_named(
    code: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = getattr(sacrebleu.tokenizers, f"tokenizer_{extra}_mecab")
    monkeypatch.setattr(module, "MeCab", None)
    choice = choose_tokenizer(code, [TEXTS[extra][1]])
    assert choice.name == "char" and choice.is_warning and f'pip install "dragoman[{extra}]"' in choice.note
    with pytest.raises(ConfigError, match=rf'needs MeCab and its dictionary: pip install "dragoman\[{extra}\]"'):
        choose_tokenizer(code, [], f"{extra}-mecab")


@pytest.mark.parametrize("text", ["zh", "ja", "th", "my"])
@pytest.mark.parametrize("language", [None, "en", "Japanese"])
def test_text_without_spaces_is_never_measured_by_13a_in_silence(text: str, language: str | None) -> None:
    choice = choose_tokenizer(language, [TEXTS[text][1]])
    assert choice.name == "char" and choice.is_warning and "have no spaces between words" in choice.note


def test_a_wrong_name_leads_to_the_right_one() -> None:
    with pytest.raises(ConfigError, match="unknown tokeniser 'ja': did you mean ja-mecab"):
        check_tokenizer("ja")
    with pytest.raises(ConfigError, match="unknown tokeniser 'flores': did you mean flores"):
        check_tokenizer("flores")


def test_a_missing_model_file_is_named_instead_of_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dragoman.metrics.bleu_tokenizer.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"flores200 needs the file .*flores200sacrebleuspm: download it from https://"
    ):
        check_tokenizer("flores200")


@pytest.mark.parametrize("language", ["zh", "ja", "th"])
def test_every_use_of_bleu_follows_the_tokeniser(language: str) -> None:
    lines, reference = TEXTS[language]
    name = EXPECTED[language]
    theirs = SacreBLEU(tokenize=name, effective_order=True)
    expected = [theirs.sentence_score(line, [ref]).score for line, ref in zip(lines, reference, strict=True)]
    metric = ngram_metrics()["bleu"].with_tokenizer(name)
    assert metric.sentence_scores(lines, reference) == expected
    assert metric.pairwise([lines[0], reference[0]])[0, 1] == pytest.approx(expected[0])
    assert sentence_rewards("bleu", lines, reference, language) == [value / 100 for value in expected]
    assert sentence_rewards("bleu", lines, reference, tokenizer=name) == [value / 100 for value in expected]
    corpus = SacreBLEU(tokenize=name).corpus_score(lines, [reference]).score
    comparison = paired_bootstrap(lines, reference, reference, tokenizer=name, samples=20)
    assert comparison.first.value == corpus and f"|tok:{name}" in comparison.first.signature
    (group,) = bleu_by_length(lines, lines, reference, tokenizer=name, edges=(1,))
    assert group.score.value == corpus
    assert LectureBLEU(name).score(reference, reference).value == pytest.approx(100)
    assert f"|tok:{name}" in LectureBLEU(name).score(lines, reference).signature


def test_rewards_of_several_languages_choose_the_tokeniser_by_each_reference() -> None:
    lines, references = zip(*((TEXTS[code][0][0], TEXTS[code][1][0]) for code in ("de", "th", "de")), strict=True)
    expected = [
        SacreBLEU(tokenize=name, effective_order=True).sentence_score(line, [reference]).score / 100
        for name, line, reference in zip(("13a", "char", "13a"), lines, references, strict=True)
    ]
    assert sentence_rewards("bleu", lines, references) == expected


def test_minimum_risk_with_bleu_compares_texts_without_spaces() -> None:
    texts = ["彼は公園を散歩した。", "彼は公園を散歩しました。", "全然違う文です。"]
    hypotheses = [Translation(text, 0.0, 0.0, (), TOKENIZER) for text in texts]
    for language in ("ja", None):
        first, second, third = MinimumRisk("bleu", language=language).expected(hypotheses)
        assert min(first, second) > third
    assert MinimumRisk("bleu", language="ja").settings()["tokenizer"] == "ja-mecab"
    assert MinimumRisk("bleu", language="de").settings() == {"utility": "bleu", "weights": "uniform"}
    assert MinimumRisk("chrf", language="ja").settings() == {"utility": "chrf", "weights": "uniform"}


def test_lengths_of_sources_without_spaces_are_counted_in_characters() -> None:
    sources = ["他昨天去公园散步了。", "我们明天要去纽约" * 4]
    groups = bleu_by_length(sources, ["a b c d", "e f g h"], ["a b c d", "e f g h"])
    assert [(group.shortest, group.sentences, group.unit) for group in groups] == [
        (1, 1, "characters"),
        (31, 1, "characters"),
    ]
    assert bleu_by_length(["one two"], ["a b"], ["a b"])[0].unit == "words"


def test_perplexity_per_word_counts_characters_of_scripts_without_spaces() -> None:
    score = TextScore.of("猫在睡觉。", [5, 6, 7], -10.0)
    assert score.words == 4 + 1
    assert TextScore.of("the cat sleeps", [5, 6, 7], -10.0).words == 3 + 1


def test_moses_is_not_offered_for_text_without_spaces() -> None:
    for code in ("zh", "ja", "yue", "th"):
        with pytest.raises(ConfigError, match="no spaces between words: leave out --tokenized"):
            TokenisedBLEU(code)

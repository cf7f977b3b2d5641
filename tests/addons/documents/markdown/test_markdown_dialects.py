"""Markdown: what GitHub, Hugo, Docusaurus, MkDocs, MyST and wikis add stays, and links lead to their headings."""

import pytest
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("mdit_py_plugins")


def translated(text: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format="markdown").text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            'A dog\n\n<Table\n  rows={[\n    { name: "a", kind: "b > c" },\n\n    { if: (x) => x },\n  ]}\n/>\n\nA cow',
            'A DOG\n\n<Table\n  rows={[\n    { name: "a", kind: "b > c" },\n\n    { if: (x) => x },\n  ]}\n/>\n\nA COW',
        ),
        ("<Tab name={x}>\n\nA dog\n\n</Tab>", "<Tab name={x}>\n\nA DOG\n\n</Tab>"),
        ("<Open {\n\nA dog", "\\<OPEN {\n\nA DOG"),
        (
            "One dog[^1]. Two[^x y]!\n\n[^1]: A *note*.\n\n    More.\n",
            "ONE DOG[^1]. TWO[^X Y]!\n\n[^1]: A *NOTE*.\n\n    MORE.\n",
        ),
        ("A dog^[It is *red*.] runs", "A DOG^[IT IS *RED*.] RUNS"),
        ("- [ ] one\n  - [x] two [X](y)\n\n1. [X] three", "- [ ] ONE\n  - [x] TWO [X](y)\n\n1. [X] THREE"),
        ("> [!NOTE]\n> A dog.", "> [!NOTE]\n> A DOG."),
        ("> > [!tip]- A title\n> > A dog.", "> > [!tip]- A TITLE\n> > A DOG."),
        ("---\nname: a\n---\n# A dog", "---\nname: a\n---\n# A DOG"),
        ("+++\nname = 'a'\n+++\nA dog", "+++\nname = 'a'\n+++\nA DOG"),
        ('{\n  "name": "a"\n}\nA dog', '{\n  "name": "a"\n}\nA DOG'),
        ("+++\n+++\r\nA dog", "+++\n+++\r\nA DOG"),
        ("Let $x_i$ and $$y$$ or \\(a_b\\) be", "LET $x_i$ AND $$y$$ OR \\(a_b\\) BE"),
        ("It is:\n$$\nx\n- y\n\n= z\n$$\nA dog", "IT IS:\n$$\nx\n- y\n\n= z\n$$\nA DOG"),
        ("> Sum\n>\n> $$ a\n> b $$", "> SUM\n>\n> $$ a\n> b $$"),
        ("It costs $5 or $6, not US$7", "IT COSTS $5 OR $6, NOT US$7"),
        ("# A dog {#dog}\n\n## Two {: .x y=z }", "# A DOG {#dog}\n\n## TWO {: .x y=z }"),
        ("A **dog**{: .red} runs\n{: #id }", "A **DOG**{: .red} RUNS\n{: #id }"),
        ("![a dog](x.png){ width=50% } and `x`{.py} here", "![A DOG](x.png){ width=50% } AND `x`{.py} HERE"),
        ('{{< note "a b" >}}\nA dog\n{{< /note >}}', '{{< note "a b" >}}\nA DOG\n{{< /note >}}'),
        ("{{% x %}}A dog{{% /x %}}", "{{% x %}}A DOG{{% /x %}}"),
        ('See [a dog]({{< ref "a b.md" >}}) here', 'SEE [A DOG]({{< ref "a b.md" >}}) HERE'),
        ("{% if a %}\nA dog\n{% endif %}\nand {{ x.y | z }}", "{% if a %}\nA DOG\n{% endif %}\nAND {{ x.y | z }}"),
        ("Dog\n: An *animal*.\n: Two\n\n    more\n", "DOG\n: AN *ANIMAL*.\n: TWO\n\n    MORE\n"),
        (
            '!!! note "A note"\n    A dog.\n\n    Two dogs.\n\nEnd',
            '!!! note "A NOTE"\n    A DOG.\n\n    TWO DOGS.\n\nEND',
        ),
        (
            "- a\n\n    ???+ warning\n        A dog.\n\n        - b\n",
            "- A\n\n    ???+ warning\n        A DOG.\n\n        - B\n",
        ),
        ('=== "A tab"\n\n    A dog.\n', '=== "A TAB"\n\n    A DOG.\n'),
        (":::tip A title\nA dog.\n:::", ":::tip A TITLE\nA DOG.\n:::"),
        (":::note[A title]{.x}\n\nA dog.\n\n::::", ":::note[A TITLE]{.x}\n\nA DOG.\n\n::::"),
        (
            "import A from '@x/a';\nexport const b = 1;\n\nA dog {props.x} {/* no */}",
            "import A from '@x/a';\nexport const b = 1;\n\nA DOG {props.x} {/* no */}",
        ),
        (
            "A dog\n\n{\n  dogs.map((x) => <li>{x}</li>)\n}\n\nA cat\n",
            "A DOG\n\n{\n  dogs.map((x) => <li>{x}</li>)\n}\n\nA CAT\n",
        ),
        ("A <B c={d.e} /> dog", "A <B c={d.e} /> DOG"),
        (
            "See [[Page]], [[A page|the text]], [[The text|A-Page]]",
            "SEE [[Page]], [[A page|THE TEXT]], [[The text|A-Page]]",
        ),
        ("A :dog: by @me in #12, a/b#3 and 1a2b3c4", "A :dog: BY @me IN #12, a/b#3 AND 1a2b3c4"),
        ("At https://a.b/c_d(e)?f, www.g.h. Or <http://i.j>", "AT https://a.b/c_d(e)?f, www.g.h. OR <http://i.j>"),
        ("A dog <!-- no --> runs<br>fast", "A DOG <!-- no --> RUNS<br>FAST"),
        ("*[HTML]: A language\n*[CSS]: A style", "*[HTML]: A LANGUAGE\n*[CSS]: A STYLE"),
        (
            "| a \\| b | c |\n|:-|-:|\n| {{ x | y }} d | [[e\\|f]] |",
            "| A \\| B | C |\n|:-|-:|\n| {{ x | y }} D | [[e\\|F]] |",
        ),
        ("H~2~O is x^2^, ==very good==, ~~old~~ and ~bad~", "H~2~O IS x^2^, ==VERY GOOD==, ~~OLD~~ AND ~BAD~"),
        ("one\\\ntwo  \nthree", "ONE\\\nTWO  \nTHREE"),
        ("The {ref}`a b <c>` and {math}`d`", "THE {ref}`a b <c>` AND {math}`d`"),
        ("```{note} A title\n:class: x\n\nA dog.\n```\nEnd", "```{note} A TITLE\n:class: x\n\nA DOG.\n```\nEND"),
        ("```{code} py\nA dog\n```", "```{code} py\nA dog\n```"),
        ("![[a dog.png]]\n\n[TOC]\n[[_TOC_]]\nA dog", "![[a dog.png]]\n\n[TOC]\n[[_TOC_]]\nA DOG"),
        ("A * b, [c], 2 < 3, d_e, f | g, {h i}, 5~6, _k", "A * B, [C], 2 < 3, D_E, F | G, {H I}, 5~6, _K"),
        ("# A # b\n\n# 1. one", "# A # B\n\n# 1. ONE"),
        ("See [`f()`](x), [two (2)](y). Then", "SEE [`f()`](x), [TWO (2)](y). THEN"),
    ],
)
def test_the_elements_of_dialects_stay(source: str, expected: str) -> None:
    assert translated(source) == expected
    assert translated(source, same) == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "The [red book] and [old map][].\n\n[red book]: /a\n[Old map]: /b\n",
            "[MAP. OLD][old map] AND [BOOK RED][red book] THE\n\n[red book]: /a\n[Old map]: /b\n",
        ),
        (
            "A ![red dog] and ![big cat][]\n\n[red dog]: a\n[big cat]: b",
            "![DOG RED][red dog] AND A ![CAT BIG][big cat]\n\n[red dog]: a\n[big cat]: b",
        ),
        ("Use [*bold* `x`] now\n\n[*bold* `x`]: a", "NOW [`x` *BOLD*][*bold* `x`] USE\n\n[*bold* `x`]: a"),
        ("An [![icon] text][x] here\n\n[icon]: a\n[x]: b", "HERE [![ICON][icon] TEXT][x] AN\n\n[icon]: a\n[x]: b"),
        ("A [dog][cat] runs\n\n[cat]: a", "RUNS [DOG][cat] A\n\n[cat]: a"),
        ("A [12] runs\n\n[12]: a", "RUNS [12] A\n\n[12]: a"),
    ],
)
def test_links_whose_text_is_their_key_keep_the_key(source: str, expected: str) -> None:
    assert translated(source, backwards) == expected
    assert translated(source, same) == source


def test_links_lead_to_the_translated_headings() -> None:
    source = (
        "See [one](#the-red-book), [two](<#the-red-book-1> 'x'), [own](#own), [gone](#gone), <a href='#a-dog-x'>c</a>"
        "\n\n# The *red* book\n\n# The red book\n\n# A text {#own}\n\n[d]: #a-dog-x\n\n## A dog `x`!\n"
    )
    found = translated(source, backwards)
    assert "](#book-red-the)" in found
    assert "](<#book-red-the-1> 'x')" in found
    assert "](#own)" in found
    assert "](#gone)" in found
    assert "<a href='#x-dog-a'>" in found
    assert "[d]: #x-dog-a\n" in found


def test_links_to_headings_of_other_documents_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert translated("[A dog](b.md#c) and [two](https://a.b#c)") == "[A DOG](b.md#c) AND [TWO](https://a.b#c)"
    assert "1 link(s) lead to headings of other documents" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("*not* bold", "\\*not\\* bold"),
        ("a * b", "a * b"),
        ("# no heading", "\\# no heading"),
        ("1. no list", "1\\. no list"),
        ("1.5 dogs", "1.5 dogs"),
        ("- no list", "\\- no list"),
        ("-5 degrees", "-5 degrees"),
        ("[x]: no definition", "\\[x]: no definition"),
        ("<b> no tag", "\\<b> no tag"),
        ("a <b", "a <b"),
        ("a [x](y)", "a \\[x\\](y)"),
        ("a $b$ c", "a \\$b\\$ c"),
        ("cost $5", "cost $5"),
        ("`` code", "`` code"),
        ("&amp; x", "\\&amp; x"),
        ("a \\* b", "a \\\\* b"),
        ("*** x ***", "*** x ***"),
        ("* x", "\\* x"),
        ("> x", "\\> x"),
    ],
)
def test_only_what_would_be_markup_is_escaped(written: str, expected: str) -> None:
    assert translated("A dog", lambda words: [(word, 0) for word in written.split(" ")]) == expected

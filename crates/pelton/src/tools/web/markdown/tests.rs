use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn read(html: &str) -> Page {
    of(html, &Url::parse("https://example.com/docs/page.html").unwrap())
}

#[track_caller]
fn check(html: &str, expected: &Expect) {
    expected.assert_eq(&read(html).markdown);
}

#[test]
fn words_stand_in_paragraphs() {
    check(
        "<html><head><title> A  page </title><style>p{}</style></head><body><h1>One <em>big</em> thing</h1>\n\
         <p>Some <b>bold</b> and <i>slanted</i> text,\n over   two lines.<br>Third line.</p><hr><div>End</div>tail",
        &expect![[r#"
            # One *big* thing

            Some **bold** and *slanted* text, over two lines.
            Third line.

            ---

            End

            tail"#]],
    );
    assert_eq!(read("<title> A  page </title>x").title, "A page");
}

#[test]
fn links_lead_somewhere() {
    check(
        "<p><a href='../a b.html'>up</a> <a href='#x'>here</a> <a href='javascript:alert(1)'>no</a> <a href='/x'> </a>\
         <a href='https://other.org/(y)'><img src=p.png alt='a picture'></a><a name=z>z</a></p>\
         <a href=/block><div>Heading</div><div>More</div></a>",
        &expect![[r#"
            [up](https://example.com/a%20b.html) here no [![a picture](https://example.com/docs/p.png)](https://other.org/(y%29)z

            [Heading](https://example.com/block)

            More"#]],
    );
}

#[test]
fn lists_and_quotes_are_indented() {
    check(
        "<ul><li>one<li>two<ol start=3><li>three</li><li>four<p>more</ol></li></ul><blockquote><p>said</p><p>again</p>\
         <ul><li>in it</li></ul></blockquote>",
        &expect![[r#"
            - one
            - two
              3. three
              4. four

                more

            > said

            > again
            > - in it"#]],
    );
}

#[test]
fn code_stays_as_it_is() {
    check(
        "<p>Use <code>x &lt; y</code>.</p><pre class='highlight'><code class='language-rust'>\nfn main() {\n    <span>let</span> a = \
         &quot;```&quot;;\n}\n</code></pre><p>Then</p>",
        &expect![[r#"
            Use `x < y`.

            ````rust
            fn main() {
                let a = "```";
            }
            ````

            Then"#]],
    );
}

#[test]
fn tables_are_tables_if_they_are() {
    check(
        "<table><thead><tr><th>Name<th>Size</thead><tr><td>a|b</td><td><p>1</p></td></tr><tr><td>c<td><b>2</b></table>\
         <table><tr><td><h2>Laid out</h2><p>words</p></td></tr></table>\
         <table><tr><td>outer<td><table><tr><td>inner</table></tr><tr><td>x<td>y</table>",
        &expect![[r#"
            | Name | Size |
            | --- | --- |
            | a\|b | 1 |
            | c | **2** |

            ## Laid out

            words

            | outer | inner |
            | --- | --- |
            | x | y |"#]],
    );
}

#[test]
fn what_nobody_reads_is_left_out() {
    check(
        "<noscript>on</noscript><svg><title>t</title><text>x</text></svg><script>a</script><template><p>t</template>\
         <select><option>o</select><p></p><b></b> left <em> </em>",
        &expect!["left"],
    );
}

#[test]
fn nothing_grows_without_end() {
    for html in [
        "<div>".repeat(100_000) + "x",
        "<blockquote>".repeat(100_000) + &"<p>x".repeat(1_000),
        "<ul><li>".repeat(100_000) + "x",
        "<table>".repeat(100_000) + "x",
        "<b>".repeat(50_000) + "x" + &"</i>".repeat(50_000),
        format!("<base href='https://e.org/{}'>", "y".repeat(100_000)) + &"<a href=x>z</a>".repeat(10_000),
        "<a href=/>".repeat(100_000) + "x<p>",
        "<pre>".repeat(100_000) + "x\n",
        "<td>".repeat(100_000),
    ] {
        let began = std::time::Instant::now();
        let page = read(&html);
        assert!(page.markdown.len() <= WEB_MARKDOWN_BYTES_MAX + 1024 * 1024, "{}", &html[..20]);
        assert!(began.elapsed().as_secs() < 10, "{} took {:?}", &html[..20], began.elapsed());
    }
}

proptest! {
    #[test]
    fn any_soup_is_read(html in "(<(p|b|a href=x|li|ul|ol|pre|code|table|tr|td|h2|blockquote|br|svg|title|script)>|</(p|b|a|li|ul|pre|table|td|svg|title|script|h2)>|x| |\n|ä|&amp;){0,80}") {
        let _ = read(&html);
    }
}

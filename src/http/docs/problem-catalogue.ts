// Renders the HTML page of all problem codes. The `type` of every problem document links to it.
import type { Config } from '../../config/config.ts'
import { problemCodes, titles } from '../../contract/output/problem-codes.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'

const style = `
:root{color-scheme:light dark;font:16px/1.55 system-ui,sans-serif}
body{margin:0 auto;max-width:60rem;padding:2rem 1rem;background:Canvas;color:CanvasText}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.05rem;margin:2rem 0 .25rem;opacity:.75}
a{color:#0b6fa8}code{font:.9em ui-monospace,monospace}
section{border-top:1px solid #8884;padding:.75rem .5rem;display:grid;grid-template-columns:14rem 1fr;gap:.25rem 1rem}
section:target{background:#f2a33a33}h3{margin:0;font-size:1rem}h3 a{text-decoration:none;overflow-wrap:anywhere}p{margin:0}
.advice{grid-column:2;opacity:.85}
@media(max-width:40rem){section{grid-template-columns:1fr}.advice{grid-column:1}}`

/** Escapes a text as HTML and renders text in backticks as `<code>`. */
const prose = (text: string): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export function errorCatalogue(config: Config): { html: string; headers: Record<string, string> } {
  const statuses = [...new Set(Object.values(problemCodes).map(([status]) => status))]
  const groups = statuses.map((status) => {
    const entries = Object.entries(problemCodes).filter(([, entry]) => entry[0] === status)
    return `<h2>${status} ${escapeHtml(titles[status] ?? '')}</h2>\n${entries.map(entry).join('\n')}`
  })
  const name = escapeHtml(config.appName)
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Problem codes · ${name}</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body>
<h1>Problem codes</h1>
<p>Every error of this API is a problem document (RFC 9457). Its <code>code</code> is one of these; programs branch on it,
people read <code>detail</code>. <a href="/api/admin/documentation">Back to the documentation</a></p>
${groups.join('\n')}
</body>
</html>
`
  return {
    html,
    headers: {
      'cache-control': 'no-cache',
      'content-security-policy': `default-src 'none'; style-src ${sourceHash(style)}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
  }
}

function entry([code, [status, meaning, advice]]: [string, readonly [number, string, string]]): string {
  return `<section id="${code}"><h3><a href="#${code}"><code>${code}</code></a> <small>${status}</small></h3><p>${prose(meaning)}</p><p class="advice">${prose(advice)}</p></section>`
}

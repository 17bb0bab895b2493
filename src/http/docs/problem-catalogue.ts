// Renders the HTML page of all problem codes. The `type` of every problem document links to it.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../config/config.ts'
import { problemCodes, titles } from '../../contract/output/problem-codes.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'
import { mark } from './assets.ts'

/** The colors and the typeface of the documentation. The page has no script to choose a theme. */
const pageStyle = readFileSync(fileURLToPath(new URL('./browser/page.css', import.meta.url)), 'utf8')
const partOf = (selector: string): string => {
  const begin = pageStyle.indexOf(`${selector} {`)
  return pageStyle.slice(pageStyle.indexOf('{', begin) + 1, pageStyle.indexOf('}', begin))
}

const style = `
:root{${partOf(':root')}}
@media(prefers-color-scheme:dark){:root{${partOf(':root.dark-mode')}}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text)}
header{background:var(--header);padding:0 20px;min-height:var(--header-height);display:flex;align-items:center;gap:10px}
header::before{content:"";width:28px;height:28px;background:url("data:image/svg+xml,${encodeURIComponent(mark)}")}
header a{color:#fff;font-weight:650;text-decoration:none}
main{margin:0 auto;max-width:64rem;padding:28px 20px 80px}
h1{font-size:28px;line-height:1.25;margin:0 0 10px}h2{font-size:20px;margin:36px 0 10px}
a{color:var(--accent)}code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.875em}
section{border-top:1px solid var(--line);padding:12px 8px;display:grid;grid-template-columns:15rem 1fr;gap:4px 16px;scroll-margin-top:12px}
section:target{background:var(--mark)}h3{margin:0;font-size:15px}h3 a{text-decoration:none;overflow-wrap:anywhere}
small{color:var(--quiet)}p{margin:0;max-width:78ch}.advice{grid-column:2;color:var(--quiet)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}header :focus-visible{outline-color:#fff}
@media(max-width:40rem){section{grid-template-columns:1fr}.advice{grid-column:1}}
@page{margin:18mm 16mm}@media print{header{display:none}main{padding:0;max-width:none}section{break-inside:avoid}a{color:inherit}}`

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
<header><a href="/api/admin/documentation">${name} API</a></header>
<main>
<h1>Problem codes</h1>
<p>Every error of this API is a problem document (RFC 9457). Its <code>code</code> is one of these; programs branch on it,
people read <code>detail</code>. <a href="/api/admin/documentation">Back to the documentation</a></p>
${groups.join('\n')}
</main>
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

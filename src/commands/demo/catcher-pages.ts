// Renders the pages on which `accord demo` shows caught e-mails and webhooks. The pages load no
// resources and run no scripts. The HTML of an e-mail is shown in a sandboxed frame.
import type { IncomingHttpHeaders } from 'node:http'
import { mark, pageColors } from '../../http/docs/assets.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'

export interface Page {
  status: number
  html: string
  /** The Content-Security-Policy header. The default policy allows nothing. */
  policy?: string
}

export interface CaughtMail {
  id: string
  /** ISO timestamp. */
  at: string
  from: string
  to: string
  subject: string
  text: string
  html: string | null
  attachments: string[]
}

export interface CaughtWebhook {
  at: Date
  headers: IncomingHttpHeaders
  body: string
}

const style = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif;${pageColors}}
body{margin:0;background:var(--page);color:light-dark(#16222b,#e6edf2)}
main{box-sizing:border-box;max-width:64rem;margin:0 auto;padding:1.5rem 1.25rem 4rem}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.6rem 1.25rem;padding-bottom:1rem;border-bottom:1px solid var(--line)}
header svg{width:2rem;height:2rem;flex:none}h1{font-size:1.35rem;margin:0 auto 0 0}a{color:var(--accent)}
nav a{margin-left:1rem}nav a[aria-current]{color:inherit;font-weight:600;text-decoration:none}
.quiet{color:var(--quiet)}.empty{padding:3rem 0;text-align:center}
ol{list-style:none;margin:1rem 0 0;padding:0}li{border-bottom:1px solid var(--line)}
li>a{display:grid;grid-template-columns:minmax(8rem,16rem) 1fr auto;gap:0 1rem;padding:.6rem .5rem;color:inherit;text-decoration:none}
li>a:hover{background:var(--soft)}li strong,li span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
summary{display:grid;grid-template-columns:minmax(10rem,18rem) 1fr auto;gap:0 1rem;padding:.6rem .5rem;cursor:pointer}summary:hover{background:var(--soft)}
a:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
dl{display:grid;grid-template-columns:auto 1fr;gap:.15rem 1rem;margin:1rem 0}dt{color:var(--quiet)}dd{margin:0;overflow-wrap:anywhere}
pre{overflow:auto;margin:0 0 1rem;padding:.9rem 1rem;background:var(--soft);border:1px solid var(--line);border-radius:.5rem;font:.82rem/1.55 ui-monospace,SFMono-Regular,Menlo,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
iframe{width:100%;height:60vh;border:1px solid var(--line);border-radius:.5rem;background:#fff;color-scheme:light}
@media(max-width:40rem){li>a,summary{grid-template-columns:1fr}}`

const policy = `default-src 'none'; style-src ${sourceHash(style)}; img-src data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

function page(title: string, here: 'mails' | 'webhooks', main: string): Page {
  const link = (name: 'mails' | 'webhooks', label: string): string =>
    `<a href="/${name}"${name === here ? ' aria-current="page"' : ''}>${label}</a>`
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)} · Accord demo</title><link rel="icon" href="data:image/svg+xml,${encodeURIComponent(mark)}"><style>${style}</style></head>
<body><main>
<header>${mark.replace('<svg ', '<svg aria-hidden="true" ')}<h1>${escapeHtml(title)}</h1><nav>${link('mails', 'E-mails')}${link('webhooks', 'Webhooks')}</nav></header>
${main}
</main></body>
</html>
`
  return { status: 200, html, policy }
}

const shownTime = (iso: string): string =>
  `<time datetime="${escapeHtml(iso)}">${escapeHtml(iso.slice(0, 16).replace('T', ' '))}</time>`

export function mailsPage(mails: readonly CaughtMail[]): Page {
  const rows = mails.map(
    ({ id, at, to, subject }) =>
      `<li><a href="/mails/${encodeURIComponent(id)}"><span>${escapeHtml(to)}</span><strong>${escapeHtml(subject)}</strong><span class="quiet">${shownTime(at)}</span></a></li>`,
  )
  const list = rows.length === 0 ? '<p class="empty quiet">No e-mail yet.</p>' : `<ol>${rows.join('\n')}</ol>`
  return page(
    `${mails.length} e-mails`,
    'mails',
    `<p class="quiet">What the demo sent. Nothing left this machine. Reload for new ones.</p>\n${list}`,
  )
}

export function mailPage({ id, at, from, to, subject, text, html, attachments }: CaughtMail): Page {
  const facts = [
    ['From', escapeHtml(from)],
    ['To', escapeHtml(to)],
    ['Date', shownTime(at)],
    ...(attachments.length > 0 ? [['Files', escapeHtml(attachments.join(', '))]] : []),
  ]
  const body =
    html === null
      ? `<pre>${escapeHtml(text)}</pre>`
      : `<iframe sandbox title="The e-mail" src="/mails/${encodeURIComponent(id)}/body"></iframe>`
  return page(
    subject,
    'mails',
    `<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl>\n${body}`,
  )
}

/**
 * Returns the HTML of an e-mail for the frame. Its policy forbids scripts and external resources.
 */
export const mailBodyPage = ({ html, text }: CaughtMail): Page => ({
  status: 200,
  html: html ?? `<pre>${escapeHtml(text)}</pre>`,
  policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'",
})

export function webhooksPage(webhooks: readonly CaughtWebhook[]): Page {
  const rows = webhooks.map(({ at, headers, body }) => {
    const { name, about } = summaryOf(body)
    const facts = Object.entries(headers)
      .filter(([key]) => /^(webhook-|content-type|user-agent)/.test(key))
      .map(([key, value]) => `<dt>${escapeHtml(key)}</dt><dd>${escapeHtml(String(value))}</dd>`)
    return `<li><details><summary><strong>${escapeHtml(name)}</strong><span>${escapeHtml(about)}</span><span class="quiet">${shownTime(at.toISOString())}</span></summary><dl>${facts.join('')}</dl><pre tabindex="0">${escapeHtml(indented(body))}</pre></details></li>`
  })
  const list = rows.length === 0 ? '<p class="empty quiet">No webhook yet.</p>' : `<ol>${rows.join('\n')}</ol>`
  return page(
    `${webhooks.length} webhooks`,
    'webhooks',
    `<p class="quiet">What the webhook “Demo catcher” posted. Change a lead, then reload.</p>\n${list}`,
  )
}

interface Envelope {
  type?: string
  data?: {
    entity_type?: string
    entity_id?: number
    name?: string
    entity?: { title?: string; name?: string; subject?: string }
  }
}

/**
 * Returns the event name and the record of a webhook. If the body is not JSON, returns its
 * beginning instead of the record.
 */
function summaryOf(body: string): { name: string; about: string } {
  try {
    const { type, data = {} } = JSON.parse(body) as Envelope
    const { entity_type: entityType = '', entity_id: id, entity } = data
    const label = entity?.title ?? entity?.name ?? entity?.subject ?? ''
    return { name: type ?? data.name ?? 'webhook', about: `${entityType} ${id ?? ''} ${label}`.trim() }
  } catch {
    return { name: 'webhook', about: body.slice(0, 80) }
  }
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}

// The guides of the documentation: Markdown files in the folder `guides`, rendered at their first
// request. A line `{{name}}` in a guide is replaced by generated HTML.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { codeBlock, eventCatalogue, jsonBlock, messageExample } from './event-catalogue.ts'
import type { ServedDocument } from './served-document.ts'

export interface Guide {
  /** The name of the file, and the last segment of the URL. */
  name: string
  title: string
  /** A line for the reference page. */
  summary: string
}

export const guides: readonly Guide[] = [
  { name: 'quick-start', title: 'Quick start', summary: 'From a token to a won lead in ten minutes.' },
  { name: 'authentication', title: 'Authentication', summary: 'Tokens and sessions, and the limits of calls.' },
  { name: 'permissions', title: 'Permissions and tokens', summary: 'Roles, views of users, abilities of tokens.' },
  { name: 'clients', title: 'Clients', summary: 'Postman and Bruno, TypeScript, Python.' },
  { name: 'errors', title: 'Errors', summary: 'Problem documents, status codes and retries.' },
  { name: 'pagination', title: 'Pagination', summary: 'Pages by number and by cursor.' },
  { name: 'filtering', title: 'Filtering', summary: 'Filters, words, sort keys and included records.' },
  { name: 'idempotency', title: 'Safe retries', summary: 'Idempotency-Key, If-Match and dry runs.' },
  { name: 'sync', title: 'Sync another system', summary: 'External ids, upserts, bulk writes, the event feed.' },
  { name: 'lead-to-quote', title: 'Lead to quote', summary: 'Products, an offer as PDF, its acceptance.' },
  { name: 'workflows', title: 'Workflows', summary: 'Rules that act when something happens.' },
  { name: 'email', title: 'E-mail in and out', summary: 'Drafts, threads, attachments, received e-mails.' },
  { name: 'files', title: 'Files', summary: 'Upload, attach, download.' },
  { name: 'webhooks', title: 'Webhooks', summary: 'Every event with its payload, and signatures.' },
  { name: 'custom-attributes', title: 'Custom attributes', summary: 'Fields of your own on records.' },
  { name: 'imports', title: 'Imports', summary: 'Records from CSV and Excel files.' },
  { name: 'campaigns', title: 'Campaigns', summary: 'Audiences, consent, tests and unsubscribing.' },
  {
    name: 'privacy',
    title: 'Duplicates, merge and a person’s data',
    summary: 'One record for one customer; export and erasure.',
  },
  { name: 'operating', title: 'Operating', summary: 'Commands, settings, backups, PostgreSQL, logs, upgrades.' },
  { name: 'changes', title: 'Changes', summary: 'Each version of the contract, and the promise to clients.' },
]

const generated: Readonly<Record<string, (contract: ServedDocument) => string>> = {
  events: eventCatalogue,
  message: (contract) => jsonBlock(messageExample(contract)),
}

/** Returns the Markdown of a guide. */
export const guideText = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`./guides/${name}.md`, import.meta.url)), 'utf8')

/** Returns the id of a heading, to which links point. */
export const headingId = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\w]+/g, '-')
    .replace(/^-|-$/g, '')

/** Returns the text of a guide as HTML. Headings have ids, so that links can point to them. */
export async function renderGuide({ name }: Guide, contract: ServedDocument): Promise<string> {
  const { Marked } = await import('marked')
  const whole = guideText(name).replace(/^\{\{(\w+)\}\}$/gm, (line, key: string) => generated[key]?.(contract) ?? line)
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: title }) {
        const id = headingId(title)
        const link = depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`
      },
      code({ text: code, lang }) {
        return `${codeBlock(code, lang ?? 'text')}\n`
      },
      table(token) {
        const row = (cells: typeof token.header, tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n')
        return `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  return marked.parse(whole)
}

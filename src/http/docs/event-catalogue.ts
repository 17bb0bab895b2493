// Renders the events of the contract for the webhook guide, with the operations that cause them and
// the bodies of their webhooks.
import { escapeHtml } from '../../kernel/values/format.ts'
import { storedNameOf } from '../../kernel/write/event-names.ts'
import { exampleOf } from './page-schema.ts'
import { operationsOf, resolveServed, type ServedDocument, type ServedSchema } from './served-document.ts'

interface Cause {
  id: string
  tag: string
  summary: string
}

/** The causes of the events of one noun, such as `lead`, by event name. */
type EventGroup = Map<string, Cause[]>

/**
 * Returns the events by noun, which is the event name up to its last dot, in the order of the
 * contract.
 */
function groupsOf(contract: ServedDocument): Map<string, EventGroup> {
  const groups = new Map<string, EventGroup>()
  for (const { operation } of operationsOf(contract))
    for (const name of operation['x-events'] ?? []) {
      const noun = name.slice(0, name.lastIndexOf('.'))
      const group = groups.get(noun) ?? new Map<string, Cause[]>()
      groups.set(noun, group)
      const { operationId: id, tags, summary } = operation
      group.set(name, [...(group.get(name) ?? []), { id, tag: tags[0] ?? '', summary }])
    }
  return groups
}

const eventMessage: ServedSchema = { $ref: '#/components/schemas/EventMessage' }

/** Returns the example of a webhook message. */
export const messageExample = ({ components }: ServedDocument) =>
  exampleOf(eventMessage, components) as { data: Record<string, unknown> }

/**
 * Returns the schema of the entity of a tag event: the ids of the record and of the tag, and the
 * tag.
 */
const tagLink = (noun: string): ServedSchema => ({
  properties: {
    [`${noun.replace(/s?\.tag$/, '')}_id`]: { examples: [7] },
    tag_id: { examples: [3] },
    tag: { $ref: '#/components/schemas/TagRef' },
  },
})

/**
 * Returns the example body of an event's webhook, or null if the contract has no example of its
 * record.
 */
function bodyOf(contract: ServedDocument, noun: string, name: string): object | null {
  const schema = contract.webhooks[name]?.post.requestBody?.content?.['application/json']?.schema
  if (schema === undefined) return null
  const { after: record, entity_type: type } =
    resolveServed(contract, schema).allOf?.find(({ properties }) => properties !== undefined)?.properties?.data
      ?.properties ?? {}
  const shown = record ?? (noun.endsWith('.tag') ? tagLink(noun) : undefined)
  if (shown === undefined) return null
  const example = exampleOf(shown, contract.components) as { id?: number }
  const [before, after] = name.endsWith('.delete.after') ? [example, null] : [null, example]
  const { data, ...message } = messageExample(contract)
  const facts = { name, entity_type: type?.const, entity_id: example.id ?? 7, changed: [], before, after }
  return { ...message, type: name, data: { ...data, ...facts } }
}

const linkTo = ({ id, tag, summary }: Cause): string =>
  `<a href="/api/admin/documentation#/${encodeURIComponent(tag)}/${id}">${escapeHtml(summary)}</a>`

export const codeBlock = (text: string, language: string): string =>
  `<pre tabindex="0" data-language="${escapeHtml(language)}"><code>${escapeHtml(text)}</code></pre>`

export const jsonBlock = (value: object): string => codeBlock(JSON.stringify(value, null, 2), 'json')

function section(contract: ServedDocument, noun: string, group: EventGroup): string {
  const names = [...group.keys()].map(storedNameOf)
  const rows = [...group].map(
    ([base, causes]) =>
      `<tr id="event-${base}"><td><code>${storedNameOf(base)}</code></td><td>${causes.map(linkTo).join(', ')}</td></tr>`,
  )
  const isSilent = names.every((name) => contract.webhooks[name] === undefined)
  const note = isSilent ? '<p>In the event feed only; webhooks never send these events.</p>' : ''
  const body = bodyOf(contract, noun, names[0] ?? '')
  const shown =
    body === null ? '' : `<details><summary>Body of <code>${names[0]}</code></summary>${jsonBlock(body)}</details>`
  return `<h3 id="${noun}"><code>${noun}</code></h3>
${note}<div class="table" tabindex="0"><table><thead><tr><th>Event</th><th>Caused by</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div>
${shown}`
}

/** Returns HTML with every event, the operations that cause it, and the body that webhooks get. */
export const eventCatalogue = (contract: ServedDocument): string =>
  [...groupsOf(contract)].map(([noun, group]) => section(contract, noun, group)).join('\n')

// Renders every event of the contract, with the body of its webhook, for the guide to webhooks.
import { escapeHtml } from '../../kernel/values/format.ts'
import { isNeverSent, storedNameOf } from '../../kernel/write/event-names.ts'
import { operationsOf, type PageContract } from './page-document.ts'
import { exampleOf, type PageSchema } from './page-schema.ts'

interface Cause {
  id: string
  tag: string
  summary: string
}

/** The events that share a name up to the last dot, such as `lead.create` and `lead.won`. */
interface EventGroup {
  noun: string
  events: Map<string, Cause[]>
  /** The type of the record, as in paths. */
  entityType: string
  /** The schema of the record; null if no operation returns it. */
  record: PageSchema | null
}

/** Returns the events of the contract in the order of its operations. */
function groupsOf(contract: PageContract): EventGroup[] {
  const groups = new Map<string, EventGroup>()
  for (const { path, operation } of operationsOf(contract))
    for (const [index, name] of ((operation['x-events'] ?? []) as string[]).entries()) {
      const noun = name.slice(0, name.lastIndexOf('.'))
      const group = groups.get(noun) ?? { noun, events: new Map<string, Cause[]>(), entityType: '', record: null }
      groups.set(noun, group)
      const { operationId: id, tags, summary } = operation
      group.events.set(name, [...(group.events.get(name) ?? []), { id, tag: tags[0] ?? '', summary }])
      if (index > 0) continue
      group.entityType ||= entityTypeOf(path)
      group.record ??= isLink(path) ? linkSchema(noun, group.entityType) : recordOf(contract, operation.responses)
    }
  return [...groups.values()]
}

/** Returns the segment before the first id, such as `leads` in `/api/admin/leads/{id}/tags`. */
const entityTypeOf = (path: string): string =>
  path
    .replace(/\/\{.*$/, '')
    .replace(/\/(validate|mass-\w+|inbound-parse)$/, '')
    .split('/')
    .pop() ?? ''

const isLink = (path: string): boolean => /\}\/tags(\/|$)/.test(path)

/** The event of a linked tag has the link: the ids of both records, and the tag. */
const linkSchema = (noun: string, entityType: string): PageSchema | null =>
  noun.endsWith('.tag')
    ? {
        properties: {
          [`${entityType.replace(/s$/, '')}_id`]: { examples: [7] },
          tag_id: { examples: [3] },
          tag: { $ref: '#/components/schemas/TagRef' },
        },
      }
    : null

/** Returns the schema under `data` of the success response, if it refers to a record. */
function recordOf({ components }: PageContract, responses: Record<string, object>): PageSchema | null {
  for (const [status, response] of Object.entries(responses)) {
    const { content } = response as { content?: Record<string, { schema: PageSchema }> }
    const $ref = status.startsWith('2') ? content?.['application/json']?.schema.$ref : undefined
    const result = $ref === undefined ? undefined : components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)]
    const data = result?.properties?.data
    if (data?.$ref !== undefined) return data
  }
  return null
}

/** Returns the body of a webhook with the example of the record. */
function bodyOf(contract: PageContract, { entityType, record }: EventGroup, type: string): object {
  const entity = record === null ? {} : (exampleOf(record, contract.components) as { id?: number; lead_id?: number })
  return {
    id: 'msg_812_2',
    type,
    timestamp: '2026-03-01T09:30:00.000Z',
    data: {
      entity_type: entityType,
      entity_id: entity.id ?? 7,
      entity,
      changed: [],
      actor: { type: 'user', id: 1, name: 'Example Admin' },
    },
  }
}

const linkTo = ({ id, tag, summary }: Cause): string =>
  `<a href="/api/admin/documentation#/${encodeURIComponent(tag)}/${id}">${escapeHtml(summary)}</a>`

function section(contract: PageContract, group: EventGroup): string {
  const names = [...group.events.keys()].map(storedNameOf)
  const rows = [...group.events].map(
    ([base, causes]) =>
      `<tr id="event-${base}"><td><code>${storedNameOf(base)}</code></td><td>${causes.map(linkTo).join(', ')}</td></tr>`,
  )
  const isSilent = names.every(isNeverSent)
  const note = isSilent ? '<p>In the event feed only; webhooks never send these events.</p>' : ''
  const body = JSON.stringify(bodyOf(contract, group, names[0] ?? ''), null, 2)
  const shown = `<details><summary>Body of <code>${names[0]}</code></summary><pre tabindex="0" data-language="json"><code>${escapeHtml(body)}</code></pre></details>`
  return `<h3 id="${group.noun}"><code>${group.noun}</code></h3>
${note}<div class="table" tabindex="0"><table><thead><tr><th>Event</th><th>Caused by</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div>
${isSilent || group.record === null ? '' : shown}`
}

/** Returns HTML with every event, the operations that cause it, and the body that webhooks get. */
export const eventCatalogue = (contract: PageContract): string =>
  groupsOf(contract)
    .map((group) => section(contract, group))
    .join('\n')

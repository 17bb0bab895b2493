// Adds the events to the contract: the section `webhooks` of OpenAPI 3.1 with the message of each
// event, and `x-event-names`, the record type of each event. Both are derived from the catalogue in
// events.ts and from the schema EventEntry of the event feed, so webhooks, the feed and streams
// describe an event with the same keys.
import { type CatalogueEvent, catalogueEvents } from './events.ts'
import type { ContractDocument, SchemaObject } from './read.ts'

const schemaRef = (name: string): SchemaObject => ({ $ref: `#/components/schemas/${name}` })

/** Returns a name in PascalCase: `EmailTemplates` for `email-templates`. */
const pascal = (name: string): string =>
  name.replace(/(?:^|[._-])(\w)/g, (_match, letter: string) => letter.toUpperCase())

/**
 * Returns the schema name of the messages about a record type, or about the links of a record type.
 */
const messageName = ({ entity, schema }: CatalogueEvent): string =>
  schema === undefined ? `${pascal(entity)}LinkMessage` : `${schema}Message`

const testName = 'webhook.test'

const headers = {
  WebhookId: {
    name: 'webhook-id',
    description: 'Identifies the message. All attempts to deliver it have the same id.',
    schema: { type: 'string', examples: ['msg_812_2_mm7ju280'] },
  },
  WebhookTimestamp: {
    name: 'webhook-timestamp',
    description: 'The time of the attempt in seconds since 1970. Refuse a message that is older than five minutes.',
    schema: { type: 'string', pattern: '^\\d+$', examples: ['1772357400'] },
  },
  WebhookSignature: {
    name: 'webhook-signature',
    description:
      '`v1,` and the base64 of the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` (Standard Webhooks). ' +
      'Its key is the base64 part of the secret after `whsec_`. ' +
      'For 24 hours after the secret was rotated there are two signatures, separated by a space.',
    schema: { type: 'string', examples: ['v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='] },
  },
}

/** Returns a copy of the document with the section `webhooks` and the components it refers to. */
export function withWebhooks(document: ContractDocument): ContractDocument {
  const entry = document.components?.schemas?.EventEntry as SchemaObject | undefined
  if (entry === undefined) return document
  const sent = catalogueEvents.filter(({ isUnsent }) => !isUnsent)
  const webhooks = Object.fromEntries(sent.map((event) => [event.name, webhookOf(event.name, event)]))
  const { schemas, parameters, responses, ...components } = document.components ?? {}
  return {
    ...document,
    'x-event-names': Object.fromEntries(catalogueEvents.map(({ name, entity }) => [name, entity])),
    webhooks: { ...webhooks, [testName]: webhookOf(testName) },
    components: {
      ...components,
      responses: { ...responses, WebhookReceived: { description: 'Any 2xx within 15 seconds confirms the message.' } },
      parameters: {
        ...parameters,
        ...Object.fromEntries(
          Object.entries(headers).map(([name, header]) => [name, { ...header, in: 'header', required: true }]),
        ),
      },
      schemas: { ...schemas, ...envelopeOf(entry, document), ...messagesOf(sent) },
    },
  }
}

function webhookOf(name: string, event?: CatalogueEvent): object {
  const operation = {
    operationId: `on${pascal(name.replace(/\.after$/, ''))}`,
    tags: ['Webhooks'],
    summary: event?.summary ?? 'A webhook is tested',
    security: [],
    parameters: Object.keys(headers).map((each) => ({ $ref: `#/components/parameters/${each}` })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemaRef(event ? messageName(event) : 'WebhookTestMessage') } },
    },
    responses: { '200': { $ref: '#/components/responses/WebhookReceived' } },
  }
  return { post: operation }
}

/**
 * Returns the schemas that all messages share. `EventFacts` has the keys of an entry of the event
 * feed without `before` and `after`. `EventEnvelope` has no records, so that the messages about a
 * record type can narrow them: an intersection of two unions would confuse TypeScript.
 */
function envelopeOf(entry: SchemaObject, { components }: ContractDocument): Record<string, SchemaObject> {
  const { before: _before, after: _after, ...shared } = entry.properties ?? {}
  const [{ before, after, ...facts }] = entry.examples as [Record<string, unknown>]
  const message = { id: 'msg_812_2_mm7ju280', type: facts.name, timestamp: facts.occurred_at }
  const properties: Record<string, SchemaObject> = {
    ...shared,
    id: { ...(components?.schemas?.NullableId as SchemaObject), description: 'Id in the feed; null in a test.' },
  }
  const envelope: Record<string, SchemaObject> = {
    id: { description: 'Identifies the message, as the header `webhook-id` does.', type: 'string' },
    type: { description: 'Name of the event.', type: 'string' },
    timestamp: schemaRef('Timestamp'),
  }
  return {
    EventFacts: {
      description: 'An event: the keys of an entry of the event feed without `before` and `after`.',
      ...objectOf(properties),
      examples: [facts],
    },
    EventSnapshot: {
      description:
        'A record as its writer saw it. ' +
        'A reader with fewer rights gets related records cut down to references, and no counts. ' +
        'The event of a link has the ids of both records.',
      type: 'object',
      additionalProperties: true,
    },
    EventEnvelope: {
      description: 'The keys of all messages. `data` also has the record in `before` and `after`.',
      ...objectOf({ ...envelope, data: schemaRef('EventFacts') }),
      examples: [{ ...message, data: facts }],
    },
    EventMessage: {
      description:
        'What a webhook sends with the payload type `default` (Standard Webhooks): ' +
        'in `data` the event as the event feed shows it.',
      ...objectOf({ ...envelope, data: objectOf({ ...properties, ...recordsOf() }) }),
      examples: [{ ...message, data: { ...facts, before, after } }],
    },
    WebhookTestMessage: {
      description: 'Message of a test. Its record is the webhook.',
      allOf: [
        schemaRef('EventMessage'),
        messagePart(
          { type: { type: 'string', const: testName } },
          { entity_type: { type: 'string', const: 'webhooks' } },
        ),
      ],
    },
  }
}

/** Returns the schemas of `before` and `after` in messages about the records of `schema`. */
const recordsOf = (schema?: string): Record<'before' | 'after', SchemaObject> => {
  const record = (description: string): SchemaObject => ({
    description,
    anyOf: [...(schema === undefined ? [] : [schemaRef(schema)]), schemaRef('EventSnapshot'), { type: 'null' }],
  })
  return {
    before: record('The record before the change; null if it was created.'),
    after: record(
      'The record after the change; null if it was deleted. ' +
        'In a message of more than 1,000,000 bytes, both have only the `id`.',
    ),
  }
}

const objectOf = (properties: Record<string, SchemaObject>): SchemaObject => ({
  type: 'object',
  required: Object.keys(properties),
  properties,
})

/** Returns a part of a message with properties of the message and of `data`. */
const messagePart = (properties: Record<string, SchemaObject>, data: Record<string, SchemaObject>): SchemaObject =>
  objectOf({ ...properties, data: objectOf(data) })

/** Returns the schema of the messages about each type of record, with the names of their events. */
function messagesOf(events: readonly CatalogueEvent[]): Record<string, SchemaObject> {
  const made: Record<string, SchemaObject> = {}
  for (const event of events) {
    const name = messageName(event)
    made[name] ??= messageOf(
      event,
      events.filter((each) => messageName(each) === name),
    )
  }
  return made
}

function messageOf({ entity, schema }: CatalogueEvent, events: readonly CatalogueEvent[]): SchemaObject {
  const type: SchemaObject = { type: 'string', enum: events.map(({ name }) => name) }
  const entityType: SchemaObject = { type: 'string', const: entity }
  return {
    description: `Message about ${schema === undefined ? `links and values of ${entity}` : entity}.`,
    allOf: [
      schemaRef(schema === undefined ? 'EventMessage' : 'EventEnvelope'),
      messagePart({ type }, { entity_type: entityType, ...(schema !== undefined && recordsOf(schema)) }),
    ],
  }
}

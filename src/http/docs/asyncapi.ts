// Renders the AsyncAPI 3.0 document: the messages of webhooks, the event feed and its streams. It
// is derived from the served contract, so its schemas include custom attributes.
import { type ServedDocument, type ServedSchema, schemasUsedBy } from './served-document.ts'

const feedPath = '/api/admin/events'
const schemaRef = (name: string): ServedSchema => ({ $ref: `#/components/schemas/${name}` })

interface Message {
  name: string
  title: string
  contentType: string
  headers?: object
  payload: ServedSchema
}

/** Returns the messages of webhooks, one for each event that webhooks send. */
function webhookMessages({ webhooks }: ServedDocument): Record<string, Message> {
  const headers = {
    type: 'object',
    required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    properties: Object.fromEntries(
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, { type: 'string' }]),
    ),
  }
  const message = ([name, { post }]: [string, ServedDocument['webhooks'][string]]): [string, Message] => {
    const payload = post.requestBody?.content?.['application/json']?.schema ?? {}
    return [name, { name, title: post.summary, contentType: 'application/json', headers, payload }]
  }
  return Object.fromEntries(Object.entries(webhooks).map(message))
}

/** Returns the messages of the feed and its streams, one for each event. */
function feedMessages({ webhooks, 'x-event-names': names }: ServedDocument): Record<string, Message> {
  const message = ([name, entity]: [string, string]): [string, Message] => {
    const facts = { name: { const: name }, entity_type: { const: entity } }
    const payload = { allOf: [schemaRef('EventEntry'), { type: 'object', properties: facts }] }
    return [name, { name, title: webhooks[name]?.post.summary ?? name, contentType: 'application/json', payload }]
  }
  return Object.fromEntries(Object.entries(names).map(message))
}

const refs = (channel: string, messages: Record<string, Message>): Record<string, object> =>
  Object.fromEntries(Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${channel}.${name}` }]))

const named = (channel: string, messages: Record<string, Message>): [string, Message][] =>
  Object.entries(messages).map(([name, message]) => [`${channel}.${name}`, message])

const operation = (channel: string, summary: string): object => ({
  action: 'send',
  channel: { $ref: `#/channels/${channel}` },
  summary,
})

/** Returns the AsyncAPI document of a served contract. */
export function asyncApiOf(document: ServedDocument, { host, protocol }: { host: string; protocol: string }): object {
  const [hooks, entries] = [webhookMessages(document), feedMessages(document)]
  return {
    asyncapi: '3.0.0',
    info: {
      title: `${document.info.title} events`,
      version: document.info.version,
      description:
        'Everything that the server sends without being asked: the messages of webhooks, and the entries of the ' +
        'event feed and its streams. `data` of a webhook message has the keys of an entry; the entry has the ' +
        'snapshots `before` and `after`, and the message has one of them as `entity`.',
      license: { name: document.info.license?.name ?? '' },
    },
    defaultContentType: 'application/json',
    servers: {
      api: { host, protocol, description: 'This server. Clients open streams here.' },
      receiver: {
        host: '{host}',
        protocol: 'https',
        description: 'The URL of a webhook.',
        variables: { host: { description: 'The host in the URL of the webhook.' } },
      },
    },
    channels: {
      webhooks: {
        address: null,
        title: 'Webhooks',
        description: 'Requests to the URLs of webhooks, signed as Standard Webhooks describes.',
        servers: [{ $ref: '#/servers/receiver' }],
        messages: refs('webhooks', hooks),
      },
      events: {
        address: feedPath,
        title: 'Event feed and streams',
        description:
          'With `Accept: text/event-stream`, server-sent events with `id`, `event` and the entry as `data`. ' +
          'With `Accept: application/json`, pages of the same entries.',
        servers: [{ $ref: '#/servers/api' }],
        messages: refs('events', entries),
      },
    },
    operations: {
      sendWebhook: operation('webhooks', 'Send an event to the subscribed webhooks'),
      sendEvent: operation('events', 'Send an event to the clients that follow the feed'),
    },
    components: {
      messages: Object.fromEntries([...named('webhooks', hooks), ...named('events', entries)]),
      schemas: schemasUsedBy([hooks, entries], document.components),
    },
  }
}

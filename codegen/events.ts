// The catalogue of events. The lint refuses any other name in x-events, because a
// misspelled event would have no subscribers. codegen/webhooks.ts renders the catalogue into the
// contract.

import { bareVerbs } from '../src/contract/bare-verbs.ts'

/** The verbs, with the predicate of a sentence about the event. */
const predicates = {
  create: 'was created',
  update: 'was changed',
  delete: 'was deleted',
  restore: 'was restored',
  erase: 'was erased',
  merge: 'got the links and values of others that were merged into it',
  unmerge: 'gave back the links and values of another one that had been merged into it',
  won: 'was won',
  lost: 'was lost',
  reopened: 'was reopened',
  amended: 'was changed in the figures of a closed month',
  sent: 'was sent',
  accepted: 'was accepted',
  declined: 'was declined',
  expired: 'has expired',
  bounced: 'came back undelivered',
  missed: 'did not run on its day, because no server ran',
  due: 'reached the time of a workflow',
  reminded: 'came due for its reminder, which goes to its owner by e-mail',
  answered: 'got the answer of a participant to its invitation',
  run: 'was run',
  resend: 'was sent again',
  save: 'was saved',
  'update-password': 'got a new password',
  failed: 'could not be opened: the sign-in failed',
  validate: 'was validated',
  started: 'was started',
  completed: 'was completed',
}

type Verb = keyof typeof predicates

interface EventNoun {
  /** The type of the record that the events are about (schema EventEntity). */
  entity: string
  /** The subject of a sentence about the event. */
  subject: string
  verbs: readonly Verb[]
  /**
   * The schema of the snapshots. Absent when no schema of a reply describes the snapshots: the
   * snapshot of a link has the ids of both records, and the snapshot of the configuration has its
   * values.
   */
  schema?: string
  /** Whether webhooks never send these events (resources/webhooks/rules.ts). */
  isUnsent?: true
}

const created = ['create', 'update', 'delete'] as const
const restorable = [...created, 'restore'] as const
const linked = ['create', 'delete'] as const

const noun = (entity: string, subject: string, verbs: readonly Verb[], schema?: string): EventNoun => ({
  entity,
  subject,
  verbs,
  ...(schema !== undefined && { schema }),
})

const nouns: Record<string, EventNoun> = {
  lead: noun('leads', 'A lead', [...restorable, 'won', 'lost', 'reopened', 'amended', 'due'], 'Lead'),
  'leads.quote': noun('leads', 'The link of a lead to a quote', linked),
  'leads.tag': noun('leads', 'The tag of a lead', linked),
  'leads.product': noun('leads', 'The product of a lead', created),
  'contacts.person': noun('persons', 'A person', [...restorable, 'merge', 'unmerge', 'erase', 'due'], 'Person'),
  'persons.tag': noun('persons', 'The tag of a person', linked),
  'contacts.organization': noun(
    'organizations',
    'An organization',
    [...restorable, 'merge', 'unmerge'],
    'Organization',
  ),
  'organizations.tag': noun('organizations', 'The tag of an organization', linked),
  product: noun('products', 'A product', restorable, 'Product'),
  'product.inventory': noun('products', 'The stock of a product', ['update']),
  'products.tag': noun('products', 'The tag of a product', linked),
  quote: noun('quotes', 'A quote', [...restorable, 'sent', 'accepted', 'declined', 'expired', 'due'], 'Quote'),
  'quotes.tag': noun('quotes', 'The tag of a quote', linked),
  activity: noun('activities', 'An activity', [...restorable, 'answered', 'reminded', 'due'], 'Activity'),
  'activities.file': noun('activities', 'The file of an activity', linked),
  email: noun('emails', 'An e-mail', [...restorable, 'bounced'], 'Email'),
  'emails.tag': noun('emails', 'The tag of an e-mail', linked),
  'settings.attribute': noun('attributes', 'An attribute', created, 'AttributeDefinition'),
  'settings.email_templates': noun('email-templates', 'An e-mail template', created, 'EmailTemplate'),
  'settings.group': noun('groups', 'A group', created, 'Group'),
  'settings.pipeline': noun('pipelines', 'A pipeline', created, 'Pipeline'),
  'settings.role': noun('roles', 'A role', created, 'Role'),
  'settings.source': noun('sources', 'A source', created, 'Source'),
  'settings.tag': noun('tags', 'A tag', created, 'Tag'),
  'settings.type': noun('types', 'A type of lead', created, 'LeadType'),
  'settings.user': noun('users', 'A user', created, 'User'),
  'settings.workflow': noun('workflows', 'A workflow', created, 'Workflow'),
  'settings.web_forms': noun('web-forms', 'A web form', created, 'WebForm'),
  'settings.webhook': { ...noun('webhooks', 'A webhook', created, 'Webhook'), isUnsent: true },
  'settings.warehouse': noun('warehouses', 'A warehouse', created, 'Warehouse'),
  'settings.location': noun('locations', 'A location', created, 'StorageLocation'),
  'warehouses.tag': noun('warehouses', 'The tag of a warehouse', linked),
  'settings.marketing.events': noun('events', 'A marketing event', created, 'MarketingEvent'),
  'settings.marketing.campaigns': noun('campaigns', 'A campaign', created, 'Campaign'),
  'marketing.campaign': noun('campaigns', 'A campaign', ['run', 'missed'], 'Campaign'),
  'marketing.send': noun('sends', 'An e-mail of a campaign', ['create', 'resend']),
  'marketing.suppression': noun('suppressions', 'A suppressed address', linked, 'Suppression'),
  'core.configuration': { ...noun('configuration', 'The configuration', ['save']), isUnsent: true },
  'user.account': noun('users', 'The account of a user', ['update', 'update-password'], 'User'),
  'user.token': { ...noun('tokens', 'A token', linked, 'Token'), isUnsent: true },
  'user.session': noun('sessions', 'A session', [...linked, 'failed']),
  'data_transfer.imports': noun('imports', 'An import', [...created, 'validate', 'started', 'completed'], 'Import'),
  'data_transfer.exports': noun('exports', 'An export', ['started']),
  files: noun('files', 'A file', linked, 'FileRecord'),
  view: noun('views', 'A saved view', created, 'View'),
}

// The log stores a changed password under both names, and webhooks get the one without a suffix.
const isBare = (verb: Verb): boolean => bareVerbs.includes(verb) || verb === 'update-password'

/** The compiler reports an unknown verb too, but `npm run regenerate` runs before it. */
function predicateOf(verb: Verb): string {
  if (predicates[verb] === undefined) throw new Error(`codegen/events.ts: write the sentence of ${verb} in predicates.`)
  return predicates[verb]
}

export interface CatalogueEvent {
  /** The name without a suffix, as in x-events. */
  base: string
  /** The name in the event log, which webhooks, the feed and streams send. */
  name: string
  entity: string
  /** A sentence without a period that says what happened. */
  summary: string
  schema: string | undefined
  isUnsent: boolean
}

export const catalogueEvents: readonly CatalogueEvent[] = Object.entries(nouns).flatMap(
  ([prefix, { entity, subject, verbs, schema, isUnsent = false }]) =>
    verbs.map((verb) => ({
      base: `${prefix}.${verb}`,
      name: isBare(verb) ? `${prefix}.${verb}` : `${prefix}.${verb}.after`,
      entity,
      summary: `${subject} ${predicateOf(verb)}`,
      // The snapshot of an erasure has only the ids of the records that changed.
      schema: verb === 'erase' ? undefined : schema,
      isUnsent,
    })),
)

/** All names of x-events, such as `lead.create`. */
export const eventBases: readonly string[] = catalogueEvents.map(({ base }) => base)

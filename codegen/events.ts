// All event base names. The lint refuses any other name in x-events, because a misspelled event
// would have no subscribers.
const created = ['create', 'update', 'delete']
const restorable = [...created, 'restore']
const linked = ['create', 'delete']

const verbs: Record<string, readonly string[]> = {
  lead: [...restorable, 'won', 'lost', 'reopened'],
  'leads.quote': linked,
  'leads.tag': linked,
  'leads.product': created,
  'contacts.person': restorable,
  'persons.tag': linked,
  'contacts.organization': restorable,
  'organizations.tag': linked,
  product: restorable,
  'product.inventory': ['update'],
  'products.tag': linked,
  quote: restorable,
  'quotes.tag': linked,
  activity: restorable,
  'activities.file': linked,
  email: restorable,
  'emails.tag': linked,
  'settings.attribute': created,
  'settings.email_templates': created,
  'settings.group': created,
  'settings.pipeline': created,
  'settings.role': created,
  'settings.source': created,
  'settings.tag': created,
  'settings.type': created,
  'settings.user': created,
  'settings.workflow': created,
  'settings.web_forms': created,
  'settings.webhook': created,
  'settings.warehouse': created,
  'settings.location': created,
  'warehouses.tag': linked,
  'settings.marketing.events': created,
  'settings.marketing.campaigns': created,
  'marketing.campaign': ['run'],
  'marketing.send': ['create', 'resend'],
  'marketing.suppression': linked,
  'core.configuration': ['save'],
  'user.account': ['update', 'update-password'],
  'user.token': linked,
  'user.session': [...linked, 'failed'],
  'data_transfer.imports': [...created, 'validate', 'started', 'completed'],
  files: linked,
}

export const eventBases: readonly string[] = Object.entries(verbs).flatMap(([noun, list]) =>
  list.map((verb) => `${noun}.${verb}`),
)

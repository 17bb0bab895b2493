// Every event base name there is. The contract may list no other in x-events: a typo here would be an event nobody hears.
const created = ['create', 'update', 'delete']
/** Of what can be restored. */
const kept = [...created, 'restore']
const linked = ['create', 'delete']

const verbs: Record<string, readonly string[]> = {
  lead: [...kept, 'won', 'lost', 'reopened'],
  'leads.quote': linked,
  'leads.tag': linked,
  'leads.product': created,
  'contacts.person': kept,
  'persons.tag': linked,
  'contacts.organization': kept,
  'organizations.tag': linked,
  product: kept,
  'product.inventory': ['update'],
  'products.tag': linked,
  quote: kept,
  'quotes.tag': linked,
  activity: kept,
  'activities.file': linked,
  email: kept,
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

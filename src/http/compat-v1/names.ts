// The fields that have another name in version 1 than in the contract.

/** Maps canonical names of fields to names of version 1. All names of a list are shown. */
export type FieldNames = Readonly<Record<string, string | readonly string[]>>

/** Returns the names for the schemas of the replies about a record type. */
const shown = (type: string, names: FieldNames): [schema: string, names: FieldNames][] =>
  [type, `Included${type}`].map((schema) => [schema, names])

/** Returns the names for all schemas of a record type. */
const record = (type: string, names: FieldNames): [schema: string, names: FieldNames][] => [
  ...shown(type, names),
  [`${type}Create`, names],
  [`${type}Update`, names],
]

const email = {
  html: 'reply',
  to: 'reply_to',
  from_name: 'name',
  sender_type: 'user_type',
  message_id: ['message_id', 'unique_id'],
  references: 'reference_ids',
}
const campaign = {
  email_template_id: 'marketing_template_id',
  email_template: 'marketing_template',
  is_active: 'status',
}
const active = { is_active: 'status' }
const stock = { available: 'on_hand' }

/** The values of version 1, by field and value of the contract. */
export const fieldValues: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sender_type: { user: 'admin' },
}

/** The names by schema of the contract. A field with the same name in both has no entry. */
export const fieldNames: Readonly<Record<string, FieldNames>> = Object.fromEntries([
  // The products of a request have the same name in version 1.
  ...shown('Lead', { products: 'lead_products' }),
  ...shown('Person', { user: ['user', 'sales_owner'] }),
  ...record('Quote', { subtotal: 'sub_total', expiry_date: 'expired_at' }),
  ...record('Email', email),
  ...['Product', 'Inventory', 'ProductStock', 'LocationStock'].flatMap((type) => shown(type, stock)),
  ...record('User', active),
  ...shown('Account', active),
  ...record('Campaign', campaign),
  ...record('Webhook', { url: 'end_point' }),
  ['WebhookWithSecret', { url: 'end_point' }],
])

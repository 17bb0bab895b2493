// The fields that have another name in version 1 than in the contract.

/** Maps canonical names of fields to names of version 1. */
export type FieldNames = Readonly<Record<string, string>>

/** Returns the names for the schemas of a record type. */
const record = (type: string, names: FieldNames): [schema: string, names: FieldNames][] =>
  [type, `Included${type}`, `${type}Create`, `${type}Update`].map((schema) => [schema, names])

const email = {
  html: 'reply',
  to: 'reply_to',
  from_name: 'name',
  sender_type: 'user_type',
  references: 'reference_ids',
}

/** The names by schema of the contract. A field with the same name in both has no entry. */
export const fieldNames: Readonly<Record<string, FieldNames>> = Object.fromEntries([
  ...record('Email', email),
  ...record('Quote', { subtotal: 'sub_total', expiry_date: 'expired_at' }),
  ...record('Campaign', { email_template_id: 'marketing_template_id', email_template: 'marketing_template' }),
  ...record('Webhook', { url: 'end_point' }),
  ['WebhookWithSecret', { url: 'end_point' }],
])

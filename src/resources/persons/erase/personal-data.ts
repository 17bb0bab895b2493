// The one place that says where personal data of persons lives. The export and the erasure of a
// person read it, and test/resources/persons.personal-data.test.ts fails for a table or a column
// with texts that is missing here.
import { type RawBuilder, sql } from 'kysely'
import type { DB } from '../../../../db/tables.gen.ts'
import { textKey } from '../../../kernel/values/names.ts'

/** The records of a person, by kind. `keptQuotes` were sent, and their customer is kept. */
export const personGroups = [
  'persons',
  'leads',
  'quotes',
  'keptQuotes',
  'activities',
  'emails',
  'sends',
  'files',
  'imports',
  'sharedActivities',
  'sharedEmails',
] as const
export type PersonGroup = (typeof personGroups)[number]

/** A column with the ids of a group, or a column with one of the person's addresses. */
type Link = readonly [column: string, group: PersonGroup | 'addresses']

/** The columns with the type and the id of the record that a row is about. */
export type AboutColumns = readonly [type: string, id: string]

type Values = Readonly<Record<string, string | number | null | RawBuilder<unknown>>>

export interface PersonalTable {
  /**
   * The columns with texts in which personal data may occur anywhere. An erasure replaces the
   * person's addresses, numbers and name in them.
   */
  readonly texts: string
  /** The columns with texts that never have personal data of a person. */
  readonly other?: string
  /** How rows belong to the person alone: by any of these columns. */
  readonly of?: readonly Link[]
  /** How rows belong to the person and to others. An erasure replaces the person in their texts. */
  readonly shared?: Link
  /** The column of shared rows that names the person. An erasure sets it to null. */
  readonly unlink?: string
  readonly about?: AboutColumns
  /** What an erasure does with rows that belong to the person. Without it, only texts change. */
  readonly erase?: 'delete' | 'facts' | Values
  /** What an erasure does with a row whose texts name the person, instead of replacing the name. */
  readonly named?: 'delete' | Values
  /** The part of an export, for a reader. Tables without a title are not exported. */
  readonly title?: string
}

const erasedDomain = '@erased.invalid'
/** Returns whether an erasure wrote the address in place of another one. */
export const isErasedAddress = (address: string): boolean => address.endsWith(erasedDomain)
/** The name that the records of an erased person show. */
export const erasedName = 'Erased person'
const erasedTitle = 'Erased'
const emptyAddress = JSON.stringify({ address: '-', country: 'ZZ', state: null, city: '-', postcode: '-' })

const nothing = (other: string): PersonalTable => ({ texts: '', other })
const linked = (column: string): PersonalTable => ({ texts: '', of: [[column, 'persons']], erase: 'delete' })

/** All tables. In the order of this list, an erasure goes through them. */
export const personalData: Readonly<Record<keyof DB, PersonalTable>> = {
  activity_participants: { ...linked('person_id'), title: 'Invitations' },
  person_activities: linked('person_id'),
  person_numbers: { ...linked('person_id'), texts: 'number' },
  person_tags: { ...linked('person_id'), title: 'Tags' },
  person_external_ids: { ...linked('person_id'), texts: 'external_id', other: 'source', title: 'Ids in other systems' },
  person_former_ids: { ...linked('person_id'), texts: 'external_id', other: 'source' },
  // Keys of others come from their own addresses: `ada+crm@…` has the key of `ada@…`.
  person_match_keys: { ...linked('person_id'), other: 'kind value' },
  person_merges: { ...linked('person_id'), texts: 'moves' },
  unique_values: { texts: 'value', about: ['entity_type', 'entity_id'], erase: 'delete', named: 'delete' },
  activity_files: { texts: 'name', shared: ['activity_id', 'sharedActivities'] },
  activities: {
    texts: 'title title_key comment location',
    of: [['id', 'activities']],
    erase: 'delete',
    shared: ['id', 'sharedActivities'],
    title: 'Activities and notes',
  },
  email_attachments: { texts: 'name', other: 'content_id', shared: ['email_id', 'sharedEmails'] },
  email_references: nothing('reference_id'),
  emails: {
    texts: 'subject subject_key html text to cc bcc from sender from_name error reply_addresses',
    other: 'message_id message_id_key kept_folders',
    of: [['id', 'emails']],
    erase: 'delete',
    shared: ['id', 'sharedEmails'],
    unlink: 'person_id',
    title: 'E-mails',
  },
  leads: {
    texts: 'title title_key description lost_reason custom_attributes',
    of: [['id', 'leads']],
    erase: {
      ...{ title: erasedTitle, title_key: textKey(erasedTitle), description: null, lost_reason: null },
      ...{ custom_attributes: '{}', person_id: null, version: sql`version + 1` },
    },
    title: 'Leads',
  },
  lead_outcomes: {
    texts: 'lost_reason',
    other: 'user_name source_name type_name pipeline_name stage_name',
    of: [['lead_id', 'leads']],
    erase: { lost_reason: null, person_id: null },
  },
  quote_documents: {
    texts: 'printed',
    of: [['quote_id', 'quotes']],
    erase: 'delete',
    shared: ['quote_id', 'keptQuotes'],
  },
  quotes: {
    texts: 'subject subject_key description billing_address shipping_address custom_attributes customer',
    other: 'number number_key taxes',
    of: [['id', 'quotes']],
    shared: ['id', 'keptQuotes'],
    erase: {
      ...{ subject: erasedTitle, subject_key: textKey(erasedTitle), description: null, shipping_address: null },
      ...{ billing_address: emptyAddress, custom_attributes: '{}', version: sql`version + 1` },
      customer: sql`case when customer is null then customer else ${JSON.stringify({ person: erasedName, organization: null })} end`,
    },
    title: 'Quotes',
  },
  quote_items: {
    texts: 'coupon_code',
    other: 'sku name',
    of: [['quote_id', 'quotes']],
    shared: ['quote_id', 'keptQuotes'],
    title: 'Items of quotes',
  },
  campaign_sends: {
    texts: 'error',
    other: 'occurrence address message_id claim',
    of: [['id', 'sends']],
    erase: {
      ...{
        address: sql`'erased-' || id || ${erasedDomain}`,
        person_id: null,
        message_id: sql`'erased-' || id || ${erasedDomain}`,
        error: null,
      },
      ...{ run_at: null, state: sql`case when state = 'queued' then 'suppressed' else state end` },
    },
    title: 'E-mails of campaigns',
  },
  suppressions: {
    texts: '',
    other: 'address',
    of: [['address', 'addresses']],
    erase: 'delete',
    title: 'Refused campaigns',
  },
  workflow_runs: {
    texts: 'reason',
    other: 'event matched_conditions actions',
    about: ['entity_type', 'entity_id'],
    erase: { matched_conditions: '[]', actions: '[]', reason: null },
  },
  webhook_deliveries: {
    texts: 'attempts',
    other: 'dedupe_key message_id event',
    about: ['entity_type', 'entity_id'],
    erase: { attempts: '[]' },
  },
  import_remainders: {
    texts: 'message',
    other: 'field',
    about: ['entity_type', 'record_id'],
    erase: { message: 'Erased' },
  },
  import_records: { texts: '', about: ['entity_type', 'record_id'], title: 'Imports' },
  import_errors: { texts: 'message cells', other: 'column code', named: { message: 'Erased', cells: '[]' } },
  import_batches: { texts: 'summary' },
  imports: {
    texts: 'errors summary changes warnings preview undo constants',
    other: 'field_separator encoding date_format decimal_separator mapping sheet unknown_references',
  },
  archives: {
    texts: 'before rows',
    other: 'pointers companions lead_owners',
    about: ['entity_type', 'entity_id'],
    erase: 'delete',
  },
  events: {
    texts: 'before after request_id',
    other: 'name actor_name ip changed lead_owners origin actor_type',
    about: ['entity_type', 'entity_id'],
    erase: 'facts',
    title: 'Events',
  },
  files: { texts: 'name', other: 'content_type sha256', of: [['id', 'files']], erase: 'delete', title: 'Files' },
  jobs: { texts: 'payload last_error', other: 'kind dedupe_key sequence locked_by', named: 'delete' },
  idempotency_keys: { texts: 'key', other: 'request_hash held_by headers body' },
  bulk_answers: nothing('hash answers'),
  saved_views: { texts: 'name name_key where', other: 'type' },
  saved_view_groups: nothing(''),
  marketing_campaigns: { texts: 'audience_filter', other: 'name name_key subject' },
  organizations: { texts: 'custom_attributes', other: 'name name_key address' },
  persons: {
    texts: 'name name_key emails contact_numbers job_title job_title_key custom_attributes',
    other: 'subscribed_source language language_key',
    of: [['id', 'persons']],
    // Only a person with quotes still has a row then.
    erase: {
      ...{ name: erasedName, name_key: textKey(erasedName), emails: '[]', contact_numbers: '[]' },
      ...{ job_title: null, job_title_key: null, organization_id: null, custom_attributes: '{}' },
      ...{ subscribed: null, subscribed_source: null, subscribed_at: null, unsubscribed_at: null },
      ...{ language: null, language_key: null, version: sql`version + 1` },
    },
    title: 'The person',
  },

  // Only links, keys and data of the company and its users.
  activity_external_ids: { texts: 'external_id', other: 'source' },
  attribute_external_ids: nothing('source external_id'),
  campaign_external_ids: nothing('source external_id'),
  email_external_ids: { texts: 'external_id', other: 'source' },
  email_template_external_ids: nothing('source external_id'),
  group_external_ids: nothing('source external_id'),
  lead_external_ids: { texts: 'external_id', other: 'source' },
  location_external_ids: nothing('source external_id'),
  marketing_event_external_ids: nothing('source external_id'),
  organization_external_ids: { texts: 'external_id', other: 'source' },
  organization_former_ids: { texts: 'external_id', other: 'source' },
  organization_match_keys: nothing('kind value'),
  organization_merges: { texts: 'moves' },
  pipeline_external_ids: nothing('source external_id'),
  product_external_ids: nothing('source external_id'),
  quote_external_ids: { texts: 'external_id', other: 'source' },
  role_external_ids: nothing('source external_id'),
  source_external_ids: nothing('source external_id'),
  tag_external_ids: nothing('source external_id'),
  type_external_ids: nothing('source external_id'),
  user_external_ids: nothing('source external_id'),
  warehouse_external_ids: nothing('source external_id'),
  web_form_external_ids: nothing('source external_id'),
  webhook_external_ids: nothing('source external_id'),
  workflow_external_ids: nothing('source external_id'),
  search_index: nothing('title subtitle body'),
  attribute_options: nothing('name name_key'),
  attributes: nothing('code name name_key default_value'),
  call_counts: nothing('scope address'),
  core_config: nothing('code value'),
  deprecated_uses: nothing('name'),
  email_folders: nothing(''),
  email_tags: nothing(''),
  email_templates: nothing('name name_key subject content'),
  erased_identities: nothing('hash'),
  event_readers: nothing('name'),
  groups: nothing('name name_key description'),
  installation: nothing('secret_check'),
  lead_activities: nothing(''),
  lead_counts: nothing('kind'),
  lead_outcome_groups: nothing('name'),
  lead_outcome_products: nothing('name sku'),
  lead_pipeline_stages: nothing('code name name_key'),
  lead_pipelines: nothing('name name_key'),
  lead_products: nothing('name sku'),
  lead_quotes: nothing(''),
  lead_sources: nothing('name name_key'),
  lead_tags: nothing(''),
  lead_totals: nothing(''),
  lead_types: nothing('name name_key'),
  locks: nothing('name locked_by'),
  login_attempts: nothing('account network'),
  mailboxes: nothing('account path uid_validity'),
  marketing_events: nothing('name name_key description'),
  migrations: nothing('name'),
  organization_activities: nothing(''),
  organization_tags: nothing(''),
  password_resets: nothing('secret_hash'),
  person_erasures: nothing('receipt'),
  product_activities: nothing(''),
  product_inventories: nothing(''),
  product_tags: nothing(''),
  products: nothing('sku sku_key name name_key description custom_attributes'),
  quote_activities: nothing(''),
  quote_numbers: nothing(''),
  quote_tags: nothing(''),
  roles: nothing('name name_key description permissions'),
  schedules: nothing('name'),
  sessions: nothing('secret_hash ip user_agent'),
  sign_in_devices: nothing('secret_hash'),
  stored_references: nothing('from_type field to_type'),
  tags: nothing('name name_key color'),
  tokens: nothing('name abilities secret_hash last_used_ip allowed_ips'),
  user_groups: nothing(''),
  users: nothing('name name_key email email_key password_hash'),
  warehouse_activities: nothing(''),
  warehouse_locations: nothing('name name_key'),
  warehouse_tags: nothing(''),
  // The contact of a warehouse is data of the company; edit the warehouse to change it.
  warehouses: nothing(
    'name name_key description contact_name contact_name_key contact_emails contact_numbers contact_address custom_attributes',
  ),
  web_form_attributes: nothing('name placeholder default_value'),
  web_form_submissions: nothing('digest'),
  web_forms: nothing(
    'form_id title title_key description submit_button_label submit_success_content background_color form_background_color form_title_color form_submit_button_color attribute_label_color language',
  ),
  webhooks: nothing(
    'name name_key entity_type description url query_params_sealed headers_sealed payload events changed secret_sealed previous_secret_sealed disabled_reason',
  ),
  workflow_occasions: nothing('occasion'),
  workflows: nothing('name name_key description conditions actions event timing due_after due_until'),
}

export const personalTables = Object.entries(personalData) as [keyof DB, PersonalTable][]
export const columnsOf = (names: string | undefined): string[] => (names ?? '').split(' ').filter(Boolean)

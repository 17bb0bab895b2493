// The table of the compatibility layer: one row for each route of version 1. A row
// names the canonical operation and defines how its request and reply are converted.

import type { OperationId } from '../../contract/types.ts'
import { fieldValues } from './names.ts'
import { isFields, type JsonFields, valueOfType } from './values.ts'

export type V1Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A canonical request that runs after the first one. Its reply replaces the first reply. */
export interface FollowUp {
  operation: OperationId
  params?: Readonly<Record<string, unknown>>
  query?: string
  /** Whether the first reply is used when this request is refused. */
  isOptional?: true
  /** The bearer token of the request. The default is that of the caller. */
  token?: string
  /**
   * The request is repeated until this function returns true for its reply, for up to ten seconds.
   */
  until?: (reply: JsonFields) => boolean
}

export interface RewriteRow {
  readonly method: V1Method
  /** The path after `/api/v1`, such as `/leads/{id}`. A `{name?}` at the end is optional. */
  readonly path: string
  readonly operation: OperationId
  /**
   * Maps canonical path and query parameters to fields of version 1 with another name. Any other
   * path parameter is read from the field of the same name in the path, query or body.
   */
  readonly params?: Readonly<Record<string, string>>
  /** `page`: a list with `links` and `meta`. `bare`: a list without them. */
  readonly list?: 'page' | 'bare'
  /** The number of records when the request has no `limit`. The default is 10. */
  readonly limit?: number
  /** The value of `include`: the related records to embed in the reply. */
  readonly include?: string | undefined
  /** Maps fields of the body to their canonical names. */
  readonly rename?: Readonly<Record<string, string>>
  /** Maps upload fields to the canonical fields for file ids. */
  readonly files?: Readonly<Record<string, string>>
  /** Converts the fields of the request. Runs before `rename`. */
  readonly arrange?: (sent: JsonFields) => JsonFields
  readonly next?: (sent: JsonFields, reply: JsonFields) => FollowUp | undefined
  /** Changes the converted reply. `first` is the unconverted reply of the first request. */
  readonly present?: ((reply: JsonFields, first: JsonFields) => unknown) | undefined
}

type More = Omit<RewriteRow, 'method' | 'path' | 'operation'>

const row =
  (method: V1Method) =>
  (path: string, operation: string, more: More = {}): RewriteRow => ({
    method,
    path,
    operation: operation as OperationId,
    ...more,
  })
const [get, post, put, del] = [row('GET'), row('POST'), row('PUT'), row('DELETE')] as const

interface Names extends Pick<RewriteRow, 'rename' | 'files' | 'arrange'> {
  many?: string
  include?: string
  /** Changes a record of a reply. */
  present?: (record: JsonFields) => JsonFields
}

/** Adds the message of the write to the reply of the read that follows it. */
const withMessage = (reply: JsonFields, { message }: JsonFields): JsonFields => ({ ...reply, message })

/**
 * Reads the record after the write, because the reply to a write does not embed related records.
 */
const thenShown = (operation: string, include: string): More => ({
  next: (_sent, { data }) => ({
    operation: operation as OperationId,
    params: { id: (data as JsonFields).id },
    query: `include=${include}`,
    isOptional: true,
  }),
  present: withMessage,
})

/** Returns the five routes of a record type: list, get, create, update and delete. */
function records(path: string, one: string, { many = `${one}s`, include, present, ...body }: Names = {}): RewriteRow[] {
  const presentPage = present && ((page: JsonFields) => ({ ...page, data: recordsOf(page).map(present) }))
  const presentOne = present && ((reply: JsonFields) => ({ ...reply, data: present(reply.data as JsonFields) }))
  const shown = include === undefined ? {} : thenShown(`get${one}`, include)
  const written: More = {
    ...body,
    ...shown,
    present: (reply, first) => presentOne?.(withMessage(reply, first)) ?? withMessage(reply, first),
  }
  return [
    get(path, `list${many}`, { list: 'page', include, present: presentPage }),
    get(`${path}/{id}`, `get${one}`, { include, present: presentOne }),
    post(path, `create${one}`, written),
    put(`${path}/{id}`, `update${one}`, written),
    del(`${path}/{id}`, `delete${one}`),
  ]
}

const recordsOf = ({ data }: JsonFields): JsonFields[] => (Array.isArray(data) ? data : []) as JsonFields[]

const search = (path: string, operation: string, more: More = {}): RewriteRow =>
  get(`${path}/search`, operation, { list: 'bare', ...more })
const timeline = (path: string, one: string): RewriteRow =>
  get(`${path}/{id}/activities`, `list${one}Activities`, { list: 'bare', limit: 100 })
const massIds = { indices: 'ids' }
const massDestroy = (path: string, many: string, more: More = {}): RewriteRow =>
  post(`${path}/mass-destroy`, `massDelete${many}`, { rename: massIds, ...more })
const massUpdate = (path: string, many: string, more: More = {}): RewriteRow =>
  post(`${path}/mass-update`, `massUpdate${many}`, { rename: massIds, ...more })
/** Both routes have the tag in the body. */
const tagLinks = (path: string, one: string): RewriteRow[] => [
  post(`${path}/{id}/tags`, `attach${one}Tag`),
  del(`${path}/{id}/tags`, `detach${one}Tag`),
]

const userNames = { rename: { confirm_password: 'password_confirmation', groups: 'group_ids' } }
const userImage = { files: { image: 'image_file_id' } }

/** `remove_image` removes the image if no new image was sent. */
const withoutImage = ({ remove_image: removes, ...sent }: JsonFields): JsonFields =>
  isOn(removes) ? { image_file_id: null, ...sent } : sent

/** Returns whether the value of a form field counts as true. */
const isOn = (value: unknown): boolean =>
  ![undefined, null, '', '0', 0, false, 'false', 'off', 'no'].includes(value as string)

const account: RewriteRow[] = [
  post('/login', 'login', {
    next: (_sent, { data }) => ({ operation: 'getAccount', token: String((data as JsonFields).token) }),
    present: ({ data }, first) => ({ data, message: first.message, token: (first.data as JsonFields).token }),
  }),
  post('/forgot-password', 'forgotPassword'),
  del('/logout', 'logout'),
  post('/logout', 'logout'),
  get('/get', 'getAccount'),
  put('/update', 'updateAccount', { ...userImage, arrange: withoutImage }),
]

/** Maps the columns that the search box of the board accepts to lookup types. */
const boardColumns: Readonly<Record<string, string>> = {
  user_id: 'users',
  'person.id': 'persons',
  lead_type_id: 'lead_types',
  lead_source_id: 'lead_sources',
}

const leads: RewriteRow[] = [
  ...records('/leads', 'Lead', { include: 'user,person' }),
  massUpdate('/leads', 'Leads'),
  massDestroy('/leads', 'Leads'),
  put('/leads/attributes/edit/{id}', 'updateLead', thenShown('getLead', 'user,person')),
  put('/leads/stage/edit/{id}', 'moveLead', thenShown('getLead', 'user,person')),
  put('/leads/product/{lead_id}', 'attachLeadProduct', { params: { id: 'lead_id' } }),
  del('/leads/product/{lead_id}', 'detachLeadProduct', { params: { id: 'lead_id' } }),
  search('/leads', 'listLeads', { include: 'user,person' }),
  get('/leads/get/{pipeline_id?}', 'kanbanLeads', { list: 'bare' }),
  get('/leads/kanban/look-up', 'lookupAttributeValues', {
    list: 'bare',
    limit: 100,
    arrange: ({ column, ...sent }) => ({ ...sent, lookup_type: boardColumns[String(column)] ?? 'unknown' }),
    present: (reply) => recordsOf(reply).map(({ id, name }) => ({ label: name, value: id })),
  }),
  ...tagLinks('/leads', 'Lead'),
  timeline('/leads', 'Lead'),
  post('/leads/{id}/emails', 'createEmail', {
    files: { attachments: 'attachment_ids' },
    arrange: ({ id, ...sent }) => ({ ...sent, lead_id: id }),
    present: ({ data, message }) => ({ data: mailAsActivity(data as JsonFields), message }),
  }),
  del('/leads/{id}/emails', 'detachLeadEmail'),
  del('/leads/{id}/quotes/{quote_id?}', 'detachLeadQuote'),
]

const contacts: RewriteRow[] = [
  ...records('/contacts/persons', 'Person', { include: 'organization,user' }),
  search('/contacts/persons', 'listPersons', { include: 'organization,user' }),
  massDestroy('/contacts/persons', 'Persons'),
  ...tagLinks('/contacts/persons', 'Person'),
  timeline('/contacts/persons', 'Person'),
  ...records('/contacts/organizations', 'Organization'),
  massDestroy('/contacts/organizations', 'Organizations'),
]

const catalog: RewriteRow[] = [
  ...records('/products', 'Product'),
  search('/products', 'listProducts'),
  massDestroy('/products', 'Products'),
  get('/products/{id}/warehouses', 'listProductWarehouses', { present: ({ data }) => data }),
  post('/products/{id}/inventories/{warehouse_id?}', 'updateProductInventories'),
  ...records('/quotes', 'Quote', { include: 'user,person' }),
  search('/quotes', 'listQuotes', { include: 'user,person' }),
  massDestroy('/quotes', 'Quotes'),
]

const activities: RewriteRow[] = [
  ...records('/activities', 'Activity', {
    many: 'Activities',
    include: 'user,participants',
    files: { file: 'file_ids' },
  }),
  get('/activities/file-download/{id}', 'downloadFile'),
  massUpdate('/activities', 'Activities'),
  massDestroy('/activities', 'Activities'),
]

/**
 * Replaces the sender of a mail by the word of version 1, and the id of each attachment by its file
 * id, because `attachment-download` gets only that id.
 */
const asMail = (mail: JsonFields): JsonFields => ({
  ...mail,
  user_type: fieldValues.sender_type?.[String(mail.user_type)] ?? mail.user_type,
  attachments: recordsOf({ data: mail.attachments }).map((each) => ({ ...each, id: each.file_id })),
  ...(isFields(mail.parent) && mail.parent.user_type !== undefined && { parent: asMail(mail.parent) }),
})

/** Returns a mail in the form of a timeline entry. */
const mailAsActivity = (mail: JsonFields): JsonFields => ({
  id: mail.id,
  parent_id: mail.parent_id,
  title: mail.subject,
  type: 'email',
  is_done: 1,
  comment: mail.reply,
  schedule_from: null,
  schedule_to: null,
  user: mail.user,
  participants: [],
  location: null,
  additional: { folders: mail.folders, from: mail.from, to: mail.reply_to, cc: mail.cc, bcc: mail.bcc },
  files: asMail(mail).attachments,
  created_at: mail.created_at,
  updated_at: mail.updated_at,
})

/** Mails are deleted permanently, except with the type `trash`. */
const deletedForGood = (sent: JsonFields): JsonFields => ({ ...sent, type: sent.type === 'trash' ? 'trash' : 'delete' })

const mailFiles = { files: { attachments: 'attachment_ids' } }
const [listMails, showMail, createMail, changeMail, deleteMail] = records('/mails', 'Email', {
  include: 'person,lead,parent',
  present: asMail,
  ...mailFiles,
}) as [RewriteRow, RewriteRow, RewriteRow, RewriteRow, RewriteRow]
const mails: RewriteRow[] = [
  listMails,
  showMail,
  createMail,
  {
    ...changeMail,
    next: ({ is_draft: isDraft }, { data }) =>
      (data as JsonFields).status === 'draft' && !isOn(isDraft)
        ? { operation: 'sendEmail', params: { id: (data as JsonFields).id } }
        : undefined,
  },
  { ...deleteMail, params: { type: 'type' }, arrange: deletedForGood },
  massUpdate('/mails', 'Emails', { arrange: ({ value: _value, ...sent }) => sent }),
  massDestroy('/mails', 'Emails', { arrange: deletedForGood }),
  get('/mails/attachment-download/{id}', 'downloadFile'),
  ...tagLinks('/mails', 'Email'),
]

const lookup = { params: { lookup_type: 'lookup' }, list: 'bare', limit: 100 } as const

const vocabulary: RewriteRow[] = [
  ...records('/settings/attributes', 'Attribute'),
  massUpdate('/settings/attributes', 'Attributes'),
  massDestroy('/settings/attributes', 'Attributes'),
  get('/settings/attributes/lookup/{lookup}', 'lookupAttributeValues', lookup),
  get('/settings/attributes/lookup-entity/{lookup}', 'lookupAttributeValues', {
    ...lookup,
    // The parameter `query` contains the id of the record.
    arrange: ({ query, ...sent }) => ({ ...sent, id: query ?? '' }),
    present: (reply) => recordsOf(reply)[0] ?? {},
  }),
  ...records('/settings/tags', 'Tag', { include: 'user' }),
  search('/settings/tags', 'listTags', { include: 'user' }),
  massDestroy('/settings/tags', 'Tags'),
  ...records('/settings/sources', 'Source'),
  ...records('/settings/types', 'Type'),
  ...records('/settings/pipelines', 'Pipeline'),
]

const administration: RewriteRow[] = [
  ...records('/settings/groups', 'Group'),
  ...records('/settings/roles', 'Role'),
  ...records('/settings/users', 'User', { include: 'role', ...userNames, ...userImage }),
  search('/settings/users', 'listUsers', { include: 'role' }),
  massUpdate('/settings/users', 'Users'),
  massDestroy('/settings/users', 'Users'),
  post('/configuration/{slug?}', 'saveConfiguration', { arrange: (sent) => ({ values: dotted(sent) }) }),
]

/** Flattens nested settings to the dotted codes of the configuration. */
function dotted(nested: JsonFields, prefix = ''): JsonFields {
  const codes = Object.entries(nested).map(
    ([key, value]): JsonFields => (isFields(value) ? dotted(value, `${prefix}${key}.`) : { [prefix + key]: value }),
  )
  return Object.assign({}, ...codes)
}

const mailActions = /^(send_email_|trigger_webhook$)/

/**
 * Converts the value of a condition or action by its `attribute_type`, because the contract has no
 * schema for it.
 */
function typedValue(rule: unknown): unknown {
  if (!isFields(rule)) return rule
  const { id, value, attribute_type: type } = rule
  const as = (each: unknown): unknown =>
    mailActions.test(String(id)) ? valueOfType(each, 'lookup') : valueOfType(each, String(type))
  if (typeof type !== 'string' && !mailActions.test(String(id))) return rule
  return { ...rule, value: Array.isArray(value) ? value.map(as) : as(value) }
}

const withTypedValues = (sent: JsonFields): JsonFields => {
  const lists = Object.entries(sent).filter(([key, list]) => /^(conditions|actions)$/.test(key) && list)
  return {
    ...sent,
    ...Object.fromEntries(lists.map(([key, list]) => [key, Object.values(list as object).map(typedValue)])),
  }
}

const automation: RewriteRow[] = [
  ...records('/settings/email-templates', 'EmailTemplate'),
  ...records('/settings/workflows', 'Workflow', { arrange: withTypedValues }),
  ...records('/settings/webhooks', 'Webhook'),
  ...records('/settings/web-forms', 'WebForm'),
  ...records('/settings/marketing/events', 'MarketingEvent'),
  massDestroy('/settings/marketing/events', 'MarketingEvents'),
  ...records('/settings/marketing/campaigns', 'Campaign', { include: 'marketing_event,email_template' }),
  massDestroy('/settings/marketing/campaigns', 'Campaigns'),
]

/** In version 1, the locations of a warehouse are also in `location`. */
const withLocation = (warehouse: JsonFields): JsonFields => ({ ...warehouse, location: warehouse.locations })
const warehouseInclude = 'locations,activities'
const presentWarehouse = ({ data, ...reply }: JsonFields): JsonFields => ({
  ...reply,
  data: withLocation(data as JsonFields),
})

const inventory: RewriteRow[] = [
  ...records('/settings/warehouses', 'Warehouse', { include: warehouseInclude, present: withLocation }).filter(
    ({ operation }) => operation !== 'getWarehouse',
  ),
  get('/settings/warehouses/view/{id}', 'getWarehouse', { include: warehouseInclude, present: presentWarehouse }),
  search('/settings/warehouses', 'listWarehouses', { present: (reply) => recordsOf(reply).map(withLocation) }),
  ...tagLinks('/settings/warehouses', 'Warehouse'),
  timeline('/settings/warehouses', 'Warehouse'),
  ...records('/settings/locations', 'Location').filter(({ method }) => method !== 'GET'),
  search('/settings/locations', 'listLocations'),
]

const importsPath = '/settings/data-transfer/imports'
/** A form omits an unchecked checkbox, so a missing `process_in_queue` means false. */
const inQueueIfSent = (sent: JsonFields): JsonFields => ({ ...sent, process_in_queue: isOn(sent.process_in_queue) })
const stateOf = ({ data }: JsonFields): unknown => (data as JsonFields).state

const dataTransfer: RewriteRow[] = [
  ...records(importsPath, 'Import', { files: { file: 'file_id' } }).map(
    (each): RewriteRow => (/^(POST|PUT)$/.test(each.method) ? { ...each, arrange: inQueueIfSent } : each),
  ),
  get(`${importsPath}/validate/{id}`, 'validateImport', {
    next: ({ id }) => ({ operation: 'getImport', params: { id }, until: (reply) => stateOf(reply) !== 'validating' }),
    present: (reply) => ({ is_valid: stateOf(reply) === 'validated', import: reply.data }),
  }),
  get(`${importsPath}/start/{id}`, 'startImport', {
    next: ({ id }) => ({ operation: 'getImportStats', params: { id } }),
    present: ({ data }) => data,
  }),
  get(`${importsPath}/stats/{id}/{state?}`, 'getImportStats', { present: ({ data }) => data }),
  get(`${importsPath}/download-sample/{sample}`, 'downloadImportSample', { params: { type: 'sample' } }),
  get(`${importsPath}/download-error-report/{id}`, 'downloadImportErrorReport'),
]

/** Every route of version 1. */
export const rows: readonly RewriteRow[] = [
  ...account,
  ...leads,
  ...contacts,
  ...catalog,
  ...activities,
  ...mails,
  ...vocabulary,
  ...administration,
  ...automation,
  ...inventory,
  ...dataTransfer,
]

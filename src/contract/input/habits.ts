// Recognizes query parameters and keys of bodies in the style of other APIs, so that an error can
// suggest the name of this API.

const words: Readonly<Record<string, readonly string[]>> = {
  per_page: [
    'limit',
    'page_size',
    'pagesize',
    'size',
    'count',
    'max_results',
    'take',
    'top',
    'page[size]',
    'page[limit]',
  ],
  page: ['offset', 'skip', 'start', 'page_number', 'pagenumber', 'page_no', 'p', 'page[number]', 'page[offset]'],
  cursor: ['page_token', 'next_token', 'starting_after', 'after', 'next', 'page[cursor]', 'page[after]'],
  include: ['expand', 'embed', 'with', 'populate', 'relations', 'includes', 'include[]', 'expand[]'],
  fields: ['field', 'select', 'columns', 'only', 'properties', 'fields[]'],
  sort: ['order_by', 'orderby', 'order', 'sort_by', 'sortby', 'sort_order', 'ordering', 'direction', 'sort[]'],
  q: ['search', 'query', 'keyword', 'keywords', 'term', 's', 'text', 'filter'],
  'created_at[gte]': ['created_since', 'created_after', 'since', 'from'],
  'created_at[lt]': ['created_before', 'until', 'to'],
  'updated_at[gte]': ['updated_since', 'updated_after', 'modified_since', 'changed_since'],
}
const meant = new Map(Object.entries(words).flatMap(([name, habits]) => habits.map((habit) => [habit, name] as const)))

const snakeOf = (word: string): string =>
  word
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()

/**
 * Returns the parameter in `known` that matches a name in the style of another API, or undefined.
 */
export function habitual(word: string, known: Iterable<string>): string | undefined {
  const names = new Set(known)
  const snake = snakeOf(word)
  // Recognizes `filter[user_id]`, `filter[lead_value][gte]`, `where[…]`, `lead_value__gte`,
  // `lead_value_gte` and `user_ids`.
  const [, field = '', rest = ''] = /^(?:filters?|where)\[([^\]]*)\](.*)$/.exec(snake) ?? []
  const [, base = '', operator = ''] = /^(.+?)__?(gt|gte|lt|lte|not|null)$/.exec(snake) ?? []
  const guesses = [meant.get(snake), snake, `${field}${rest}`, `${base}[${operator}]`, snake.replace(/s?(\[\])?$/, '')]
  return guesses.find((guess) => guess !== undefined && guess !== word && names.has(guess))
}

/**
 * Returns the parameter in `known` that selects by the id of a related record, for a name such as
 * `person_name`, `person.email` or `stage`, or undefined.
 */
export function relatedFilter(word: string, known: Iterable<string>): string | undefined {
  const names = [...known].filter((name) => name.endsWith('_id'))
  const parts = snakeOf(word.slice(0, maxLength)).split(/[._[\]]+/)
  for (let count = parts.length; count > 0; count--) {
    const name = `${parts.slice(0, count).join('_')}_id`
    const found = names.find((each) => each === name) ?? names.find((each) => each.endsWith(`_${name}`))
    if (found !== undefined && name !== '_id') return found
  }
  return undefined
}

const maxLength = 100

/** Keys of bodies, each with its names in other APIs. */
const keys: Readonly<Record<string, readonly string[]>> = {
  lead_value: ['amount', 'value', 'deal_value', 'deal_amount', 'opportunity_value', 'revenue', 'budget'],
  price: ['amount', 'unit_price', 'cost'],
  contact_numbers: ['phone', 'phones', 'phone_number', 'phone_numbers', 'telephone', 'mobile', 'tel'],
  emails: ['email', 'mail', 'email_address', 'email_addresses'],
  title: ['name', 'subject', 'summary', 'topic'],
  name: ['title', 'full_name', 'fullname', 'display_name', 'first_name', 'last_name', 'label'],
  subject: ['title', 'name'],
  user_id: ['owner', 'owner_id', 'assignee', 'assignee_id', 'assigned_to', 'assigned_user_id', 'responsible_id'],
  organization_id: ['company', 'company_id', 'account', 'account_id', 'org', 'org_id'],
  organization_name: ['company_name', 'account_name'],
  person_id: ['contact', 'contact_id', 'customer', 'customer_id', 'client', 'client_id'],
  person: ['contact', 'customer'],
  lead_pipeline_stage_id: ['status', 'phase', 'step'],
  expected_close_date: ['close_date', 'closing_date', 'due_date', 'deadline'],
  description: ['note', 'notes', 'comment', 'comments', 'details', 'body', 'text'],
  comment: ['note', 'notes', 'description', 'body', 'text'],
  job_title: ['position', 'role', 'title'],
  tag_ids: ['label', 'labels', 'label_ids'],
  custom_attributes: ['custom_fields', 'properties', 'attributes', 'fields', 'custom', 'extra', 'metadata'],
  external_ids: ['external_id', 'foreign_id', 'remote_id'],
  schedule_from: ['start', 'starts_at', 'start_date', 'start_time', 'begin'],
  schedule_to: ['end', 'ends_at', 'end_date', 'end_time', 'due_at'],
}
const keysByHabit = new Map<string, string[]>()
for (const [key, habits] of Object.entries(keys))
  for (const habit of habits) keysByHabit.set(habit, [...(keysByHabit.get(habit) ?? []), key])

/**
 * Returns the key of this API that matches a key in the style of another API, or undefined. Tries
 * the list of a mass operation, known synonyms, snake case, and the key with `_id` or `_ids`.
 */
export function habitualKey(word: string, known: readonly string[]): string | undefined {
  const snake = snakeOf(word.slice(0, maxLength))
  if (known.includes('ids') && /(^|_)(ids?|indices|records)$/.test(snake)) return 'ids'
  const id = `${snake.replace(/_id$/, '')}_id`
  const guesses = [...(keysByHabit.get(snake) ?? []), snake, id, `${snake.replace(/s$/, '')}_ids`]
  return guesses.find((guess) => guess !== word && known.includes(guess)) ?? known.find((key) => key.endsWith(`_${id}`))
}

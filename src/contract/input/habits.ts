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

/** Returns `ids` for another name of the list of a mass operation, or undefined. */
export const habitualKey = (word: string, known: readonly string[]): string | undefined =>
  known.includes('ids') && /(^|_)(ids?|indices|records)$/.test(snakeOf(word)) ? 'ids' : undefined

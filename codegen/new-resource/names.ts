// The names of a new resource in each language of the project, all from one word in the plural.

export interface Names {
  /** As in paths and folders: `delivery-notes`. */
  slug: string
  /** As in the database: `delivery_notes`. */
  table: string
  /** As in code: `deliveryNotes`. */
  camel: string
  /** As in operationIds of lists: `DeliveryNotes`. */
  plural: string
  /** As in schemas: `DeliveryNote`. */
  single: string
  /** For people: `delivery note`, `delivery notes`, `Delivery Notes`. */
  noun: string
  nouns: string
  tag: string
  /** The noun in the names of its events: `delivery_note`. */
  event: string
  /** Its permission key: `delivery_notes`. */
  key: string
}

const pattern = /^[a-z]+(-[a-z]+)*s$/

/** Throws if `slug` is not a plural in lower case with hyphens. */
export function namesOf(slug: string): Names {
  if (!pattern.test(slug))
    throw new Error(
      `"${slug}" is not a name: write a plural in lower case, with hyphens: npm run new-resource -- parcels`,
    )
  const words = slug.split('-')
  const singular = slug.replace(/ies$/, 'y').replace(/s$/, '').split('-')
  const capitalized = (list: string[]): string[] => list.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  const plural = capitalized(words).join('')
  return {
    slug,
    table: words.join('_'),
    camel: plural.charAt(0).toLowerCase() + plural.slice(1),
    plural,
    single: capitalized(singular).join(''),
    noun: singular.join(' '),
    nouns: words.join(' '),
    tag: capitalized(words).join(' '),
    event: singular.join('_'),
    key: words.join('_'),
  }
}

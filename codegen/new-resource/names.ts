// Derives the names of a new resource in code, database and API from its plural, such as
// `delivery-notes`.

export interface Names {
  /** The name in paths and folders: `delivery-notes`. */
  slug: string
  /** The name in the database: `delivery_notes`. */
  table: string
  /** The name in code: `deliveryNotes`. */
  camel: string
  /** The name in operationIds of lists: `DeliveryNotes`. */
  plural: string
  /** The name in schemas: `DeliveryNote`. */
  single: string
  /**
   * The names in texts. `noun`: `delivery note`. `nouns`: `delivery notes`. `tag`: `Delivery
   * Notes`.
   */
  noun: string
  nouns: string
  tag: string
  /** The noun in the event names of the resource: `delivery_note`. */
  event: string
  /** The permission key of the resource: `delivery_notes`. */
  key: string
}

const pattern = /^[a-z]+(-[a-z]+)*s$/

/** Returns the names of a resource. Throws if `slug` is not a plural in lower case with hyphens. */
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

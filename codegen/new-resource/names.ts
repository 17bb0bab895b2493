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

/** A reference to a record of another resource, as `--reference lead` asks for it. */
export interface ReferenceNames {
  /** The field: `lead_id`. */
  reference: string
  referenceNoun: string
  /** The name in schemas and parameters: `Lead`. */
  referenceSingle: string
  referenceTable: string
  /** The export and the file of the other resource: `leads`, `leads/resource.ts`. */
  referenceCamel: string
  referenceFile: string
}

/** A field with fixed values, as `--one-of state=open,sent` asks for it. */
export interface ChoiceNames {
  /** The field: `state`. */
  choice: string
  choiceWords: string
  /** The name in schemas: `ParcelState`. */
  choiceSchema: string
  /** The values in YAML and in TypeScript. The first one is the default. */
  choiceList: string
  choiceTexts: string
  choiceFirst: string
}

const pattern = /^[a-z]+(-[a-z]+)*s$/

const capitalized = (list: string[]): string[] => list.map((word) => word.charAt(0).toUpperCase() + word.slice(1))

/** Returns the names of a resource. Throws if `slug` is not a plural in lower case with hyphens. */
export function namesOf(slug: string): Names {
  if (!pattern.test(slug))
    throw new Error(
      `"${slug}" is not a name: write a plural in lower case, with hyphens: npm run new-resource -- parcels`,
    )
  const words = slug.split('-')
  const singular = slug.replace(/ies$/, 'y').replace(/s$/, '').split('-')
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

/**
 * Returns the names of a field with fixed values from a text such as `state=open,sent`. Throws if
 * the text has another form.
 */
export function choiceOf(text: string, { single }: Names): ChoiceNames {
  const [, choice = '', list = ''] =
    /^([a-z]+(?:_[a-z]+)*)=([a-z]+(?:[_-][a-z]+)*(?:,[a-z]+(?:[_-][a-z]+)*)+)$/.exec(text) ?? []
  if (choice === '')
    throw new Error(
      `"${text}" is not a field with values: write its name and at least two values: --one-of state=open,sent`,
    )
  const values = list.split(',')
  return {
    choice,
    choiceWords: choice.replaceAll('_', ' '),
    choiceSchema: `${single}${capitalized(choice.split('_')).join('')}`,
    choiceList: values.join(', '),
    choiceTexts: values.map((value) => `'${value}'`).join(', '),
    choiceFirst: values[0] ?? '',
  }
}

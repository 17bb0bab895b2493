// Suggests the field of each column of a file, from the header and the values of the column. A
// field is suggested for at most one column.
import { distance } from 'fastest-levenshtein'
import { nearest } from '../../../contract/input/did-you-mean.ts'
import type { Schema } from '../../../contract/types.ts'
import { fold } from '../../../kernel/values/format.ts'
import type { ImportColumn } from '../map-columns/columns.ts'
import type { ImportType, Mapping } from '../settings.ts'
import type { ColumnValues } from './detect-formats.ts'
import { subscriptionRule } from './layouts/subscriptions.ts'
import { canBePhone, looksLikePhone } from './phone-values.ts'

type Confidence = Schema<'ImportColumn'>['confidence']

export interface Suggestion {
  /** The mapping that can be confirmed as it is. */
  mapped: Mapping[string]
  /** The field, if it is only proposed. `mapped` is null then. */
  proposed?: string
  confidence: Confidence
  /** The reason for the suggestion, if the header does not name the field. */
  basis?: 'values' | 'similar'
}

const company =
  'company|company name|organization|account|account name|customer|employer|firma|firmenname|unternehmen|kunde|empresa|entreprise|societe|azienda|bedrijf|foretag|firma nazwa|компания|организация|会社名|会社|法人名|公司|公司名称|회사|회사명'
const email =
  'email|e mail|email address|e mail address|mail|primary email|contact email|e mail adresse|correo|correo electronico|courriel|adresse mail|e mailadres|epost|e post|электронная почта|эл почта|メールアドレス|メール|电子邮件|邮箱|이메일'
const owner =
  'owner|account owner|contact owner|lead owner|deal owner|record owner|assigned to|sales rep|sales agent|verantwortlich|zustandig|betreuer|besitzer|responsable|responsabile|ответственный|担当者|担当'
const phone =
  'phone|phone number|phones|telephone|telephone number|tel|mobile|mobile phone|cell|cell phone|contact number|telefon|telefonnummer|handy|mobil|rufnummer|telefono|numero de telephone|電話番号|電話|携帯|携帯電話|电话|手机|전화번호|전화'
const tags = 'tag|labels|label|categories|schlagworte|schlagworter|etiquetas|etiquettes|タグ|标签'

/**
 * Common headers of each field, separated by `|` and in the form that `normalizeHeader` returns.
 */
const usualNames: Record<ImportType, Readonly<Record<string, string>>> = {
  persons: {
    name: 'full name|contact|contact name|person|display name|ansprechpartner|kontakt|nombre|nom|nome|naam|namn|имя|фио|氏名|名前|お名前|姓名|名字|이름|성명',
    emails: email,
    contact_numbers: phone,
    organization_name: company,
    user: owner,
    job_title:
      'title|position|role|job|function|funktion|stelle|cargo|poste|fonction|functie|должность|役職|職位|职位|직책',
    tags,
  },
  organizations: {
    name: company,
    'address.address':
      'street|address|street address|address line 1|billing street|billing address|strasse|adresse|direccion|rue|via',
    user: owner,
    'address.city': 'city|billing city|town|ort|stadt|ciudad|ville|citta',
    'address.postcode':
      'zip|zip code|billing zip|billing postal code|billing zip postal code|postal code|post code|plz|postleitzahl|codigo postal|code postal|cap',
    'address.state': 'state|billing state|billing state province|province|region|county|bundesland|provincia',
    'address.country': 'country|billing country|country code|land|pais|pays|paese',
    tags,
  },
  products: {
    sku: 'article number|item number|product code|item code|part number|artikelnummer|referencia|reference',
    name: 'product|product name|item|item name|title|artikel|produkt|bezeichnung|producto|produit|nombre|nom',
    description: 'details|beschreibung|descripcion',
    price: 'unit price|sales price|list price|preis|einzelpreis|precio|prix|prezzo',
    quantity: 'qty|stock|in stock|menge|bestand|cantidad|quantite',
    tags,
  },
  leads: {
    title: 'lead|lead name|deal|deal name|opportunity|opportunity name|name|subject|titel|titulo|titre|betreff',
    description:
      'notes|note|details|comment|comments|beschreibung|notizen|bemerkung|bemerkungen|anmerkung|descripcion|notas|remarques|備考|メモ|备注',
    lead_value:
      'value|amount|deal value|deal amount|close value|wert|betrag|volumen|auftragswert|importe|valor|montant|金額|金额|금액',
    person_email: email,
    person: 'contact|contact name|contact person|person name|client name|ansprechpartner|kontakt',
    person_phone: phone,
    organization_name: company,
    user: owner,
    stage: 'deal stage|stage name|phase',
    status: 'deal status|outcome|ergebnis',
    pipeline: 'deal pipeline|sales pipeline',
    source: 'lead source|deal source|quelle',
    type: 'deal type|lead type|opportunity type',
    expected_close_date:
      'expected close|expected close date|expected closing date|forecast date|close date|abschluss|abschlussdatum|voraussichtlicher abschluss|erwarteter abschluss|geplanter abschluss|fecha de cierre|date de cloture',
    closed_at: 'closed|closed on|closed date|date closed|closed time',
    lost_reason: 'loss reason|reason lost|reason for loss',
    tags,
  },
}

/** The names of the fields of all types, and their usual names. */
const usualOfAny = new Set(
  Object.values(usualNames).flatMap((fields) =>
    Object.entries(fields).flatMap(([field, all]) => [field, ...all.split('|')]),
  ),
)

/**
 * Converts a header to lower-case words without accents, so that `CompanyName` equals
 * `company_name`.
 */
export const normalizeHeader = (header: string): string =>
  fold(header.replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2'))
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

/** The minimum length of headers that are compared with similar names, for typing errors. */
const minSimilarLength = 5
/** The minimum length of names in which two letters may be wrong. */
const minLongLength = 8

type Rule = (column: ColumnValues) => string | undefined

export function suggestFields(
  type: ImportType,
  fields: ReadonlyMap<string, ImportColumn>,
  columns: readonly ColumnValues[],
): Suggestion[] {
  const found = columns.map((): Suggestion => ({ mapped: null, confidence: 'none' }))
  const taken = new Set<string>()
  const apply = (confidence: Confidence, rule: Rule, basis?: Suggestion['basis'], isOpen = false): void => {
    for (const [index, column] of columns.entries()) {
      if (found[index]?.mapped !== null) continue
      const field = rule(column)
      if (field === undefined || taken.has(field) || !fields.has(field)) continue
      taken.add(field)
      found[index] = {
        mapped: isOpen ? null : field,
        confidence,
        ...(isOpen && { proposed: field }),
        ...(basis && { basis }),
      }
    }
  }
  // A column `ID` usually contains the ids of another system, so it is not suggested as the lead
  // id.
  const own = namesOf([...fields.values()].filter(({ name }) => name !== 'id'))
  const usual = new Map(
    Object.entries(usualNames[type]).flatMap(([field, names]) =>
      names.split('|').map((name) => [name, field] as const),
    ),
  )
  const similar = new Map([...usual, ...own].filter(([name]) => name.length >= minSimilarLength))
  apply('exact', ({ header }) => header)
  apply('exact', ({ header }) => own.get(normalizeHeader(header)))
  apply('likely', ({ header }) => usual.get(normalizeHeader(header)))
  if (type === 'persons') {
    suggestNameParts(found, taken, columns)
    suggestSubscriptions(found, columns)
  }
  suggestFurtherPoints(type, found, columns)
  if (type === 'leads') suggestClosing(found, taken, columns)
  // A misspelt header says more than values do.
  apply('possible', (column) => similarField(column, similar), 'similar')
  apply('possible', (column) => (isUnmistakable(column) ? fieldByValues(type)(column) : undefined), 'values')
  apply('possible', fieldByValues(type), 'values', true)
  return found
}

/**
 * Returns the field whose name the header misspells. Addresses and numbers to call must look so:
 * `Contract number` does not misspell `Contact number`.
 */
function similarField({ header, values }: ColumnValues, similar: ReadonlyMap<string, string>): string | undefined {
  const name = normalizeHeader(header)
  // `Phone` is not a misspelt `Phase`, but the usual name of another field.
  if (name.length < minSimilarLength || usualOfAny.has(name)) return undefined
  const known = [...similar.keys()].filter((each) => isMisspelt(name, each))
  const field = similar.get(nearest(name, known) ?? '')
  const isFit = field === undefined ? undefined : { emails: isEmail, contact_numbers: looksLikePhone }[field]
  return isFit === undefined || filledOf(values).every(isFit) ? field : undefined
}

/**
 * Returns whether a name differs by typing errors only: one letter, two swapped letters, or two
 * letters of a long name. A short word must be right: `USt-Id` does not misspell `user id`.
 */
function isMisspelt(name: string, known: string): boolean {
  const [words, knownWords] = [name.split(' '), known.split(' ')]
  const isShort = (word: string, index: number): boolean => word.length < minSimilarLength && word !== words[index]
  if (words.length === knownWords.length && knownWords.length > 1 && knownWords.some(isShort)) return false
  const [one, other] = [words.join(''), knownWords.join('')]
  const isLong = Math.min(one.length, other.length) >= minLongLength
  const isSwapped = [...one].sort().join('') === [...other].sort().join('')
  return distance(one, other) <= (isLong || isSwapped ? 2 : 1)
}

/** The headers of the parts of a name, in the order of the parts. */
const nameParts = [
  'salutation|prefix|name prefix|anrede|titel',
  'first name|given name|forename|vorname|prenom|nombre de pila|primer nombre|voornaam|fornamn',
  'middle name|additional name|second name|zweiter vorname',
  'last name|family name|surname|nachname|familienname|nom de famille|apellido|apellidos|cognome|achternaam|efternamn',
  'suffix|name suffix',
]

/** Suggests the columns of a first and a last name, if no column has the whole name. */
function suggestNameParts(found: Suggestion[], taken: Set<string>, columns: readonly ColumnValues[]): void {
  const places = columns.map(({ header }) =>
    nameParts.findIndex((names) => names.split('|').includes(normalizeHeader(header))),
  )
  if (taken.has('name') || !places.some((place) => place === 1 || place === 3)) return
  for (const [index, place] of places.entries())
    if (place >= 0 && found[index]?.mapped === null)
      found[index] = { mapped: { fields: ['name'], order: place + 1 }, confidence: 'likely' }
  taken.add('name')
}

/** Suggests the columns that say who gets no mailings, so that a campaign never reaches them. */
function suggestSubscriptions(found: Suggestion[], columns: readonly ColumnValues[]): void {
  for (const [index, { header }] of columns.entries()) {
    const rule = subscriptionRule(normalizeHeader(header))
    if (rule && found[index]?.mapped === null) found[index] = { mapped: rule, confidence: 'exact' }
  }
}

const closingHeader = /^(close date|closing date|abschluss|abschlussdatum|fecha de cierre|date de cloture)$/

/** One date is the closing time of closed leads and the expected date of the others. */
function suggestClosing(found: Suggestion[], taken: ReadonlySet<string>, columns: readonly ColumnValues[]): void {
  if (taken.has('closed_at') || !(taken.has('stage') || taken.has('status'))) return
  for (const [index, { header }] of columns.entries())
    if (found[index]?.mapped === 'expected_close_date' && closingHeader.test(normalizeHeader(header)))
      found[index] = { mapped: { fields: ['closed_at', 'expected_close_date'] }, confidence: 'likely' }
}

const further: readonly (readonly [field: string, header: RegExp])[] = [
  [
    'emails',
    /^(?:(?:work|home|business|private|personal|other|second|secondary|alternative) )?e ?mail(?: address)?(?: \d+)?(?: address)?$/,
  ],
  [
    'contact_numbers',
    /^(?:(?:work|home|business|private|personal|other|second|secondary|mobile|cell|office|direct) )?(?:phone|telephone|tel|mobile|cell|handy|telefon|mobil)(?: (?:number|phone))?(?: \d+)?$/,
  ],
]

/** Suggests all columns whose headers name an address or a number, because persons have several. */
function suggestFurtherPoints(type: ImportType, found: Suggestion[], columns: readonly ColumnValues[]): void {
  if (type !== 'persons') return
  for (const [index, { header, values }] of columns.entries())
    for (const [field, pattern] of further) {
      const filled = filledOf(values)
      const isFit = field === 'emails' ? isEmail : canBePhone
      if (found[index]?.mapped !== null || !pattern.test(normalizeHeader(header))) continue
      if (filled.length > 0 && filled.every(isFit)) found[index] = { mapped: { fields: [field] }, confidence: 'likely' }
    }
}

/** Returns a map from normalized name to field. Custom attributes occur by code and by name. */
const namesOf = (fields: readonly ImportColumn[]): Map<string, string> =>
  new Map(
    fields.flatMap(({ name, label }) => [name, label ?? name].map((each) => [normalizeHeader(each), name] as const)),
  )

const isEmail = (text: string): boolean => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text)

/** Returns a rule that recognizes e-mail addresses and telephone numbers. */
const fieldByValues =
  (type: ImportType): Rule =>
  ({ values }) => {
    const filled = filledOf(values)
    if (filled.length === 0) return undefined
    if (filled.every(isEmail)) return type === 'leads' ? 'person_email' : 'emails'
    return filled.every(looksLikePhone) ? 'contact_numbers' : undefined
  }

/**
 * Returns whether the values of a column can be nothing but addresses or numbers to call. Tax
 * numbers, customer numbers and ISBNs look like national telephone numbers.
 */
const isUnmistakable = ({ values }: ColumnValues): boolean =>
  filledOf(values).every((value) => isEmail(value) || /^(?:\+|\(\+?\d+\))/.test(value))

const filledOf = (values: readonly string[]): string[] =>
  values.map((value) => value.trim()).filter((value) => value !== '')

// Which columns an import of each type reads (DOMAIN 21.1): the built-in ones, those of the installation's own attributes, and
// what our exports write besides, which is passed over. The header of a file is checked against them.
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addressParts } from '../../kernel/values/address.ts'
import { type Attribute, ownAttributes } from '../attributes/set.ts'
import { leadColumns } from '../leads/columns.ts'
import { organizationColumns } from '../organizations/columns.ts'
import { personColumns } from '../persons/columns.ts'
import { productColumns } from '../products/columns.ts'
import { contactPoints, moment, names, option, optionList, productLines, type Reader, text, whole } from './cells.ts'

export type Type = Schema<'Import'>['type']
export type Action = Schema<'Import'>['action']

export interface Column {
  name: string
  /** Where its value goes in the body; `tags`, `person_email` and the `id` of a lead are no fields of a body. */
  path: readonly string[]
  read: Reader
  /** What NULL means: a list becomes empty. */
  cleared: null | readonly never[]
}

const column = (name: string, read: Reader = text, path: readonly string[] = [name]): Column => ({
  name,
  path,
  read,
  cleared: null,
})
const list = (name: string, read: Reader, path: readonly string[] = [name]): Column => ({
  ...column(name, read, path),
  cleared: [],
})
const parts = (name: string, path: readonly string[]): Column[] =>
  addressParts.map((part) => column(`${name}.${part}`, text, [...path, part]))

const builtIn: Record<Type, readonly Column[]> = {
  persons: [
    column('name'),
    list('emails', contactPoints),
    list('contact_numbers', contactPoints),
    column('organization_id', whole),
    column('organization_name'),
    column('job_title'),
    column('user_id', whole),
    list('tags', names),
  ],
  organizations: [column('name'), ...parts('address', ['address']), column('user_id', whole), list('tags', names)],
  products: [
    column('sku'),
    column('name'),
    column('description'),
    column('quantity'),
    column('price'),
    list('tags', names),
  ],
  leads: [
    column('id', whole),
    ...['title', 'description', 'lead_value', 'lost_reason'].map((name) => column(name)),
    column('closed_at', moment),
    column('user_id', whole),
    column('person_id', whole),
    column('person_email'),
    ...['lead_source_id', 'lead_type_id', 'lead_pipeline_id', 'lead_pipeline_stage_id'].map((name) =>
      column(name, whole),
    ),
    column('expected_close_date'),
    list('product', productLines, ['products']),
    list('tags', names),
  ],
}

/** The column that says which record a row stands for. */
export const keyColumns: Record<Type, Record<Action, string>> = {
  persons: { append: 'emails', delete: 'emails' },
  organizations: { append: 'name', delete: 'name' },
  products: { append: 'sku', delete: 'sku' },
  leads: { append: 'title', delete: 'id' },
}

/** A file needs one of these: a person needs no address, and can be found by a number. */
const needed = (type: Type, action: Action): readonly string[] =>
  type === 'persons' && action === 'append' ? ['emails', 'contact_numbers', 'name'] : [keyColumns[type][action]]

function own(attribute: Attribute): Column[] {
  const { code, type, lookup, options } = attribute
  const path = ['custom_attributes', code]
  const choices = lookup === null ? options : []
  switch (type) {
    case 'subheading':
      return []
    case 'address':
      return parts(code, path)
    case 'email':
    case 'phone':
      return [column(code, contactPoints, path)]
    case 'select':
    case 'lookup':
      return [column(code, option(choices), path)]
    case 'multiselect':
    case 'checkbox':
      return [column(code, optionList(choices), path)]
    case 'datetime':
      return [column(code, moment, path)]
    case 'image':
    case 'file':
      return [column(code, whole, path)]
    default:
      return [column(code, text, path)]
  }
}

/** The names of the own attributes' columns, for samples. */
export const ownColumns = async (ctx: Context, type: Type): Promise<Column[]> =>
  (await ownAttributes(ctx, type)).flatMap(own)

/** A name of a built-in column stands for that, whatever an attribute is called. */
export async function columnsOf(ctx: Context, type: Type): Promise<Map<string, Column>> {
  const all = [...(await ownColumns(ctx, type)), ...builtIn[type]]
  return new Map(all.map((each) => [each.name, each]))
}

const exported = {
  persons: personColumns,
  organizations: organizationColumns,
  products: productColumns,
  leads: leadColumns,
} satisfies Record<Type, unknown>

export interface HeaderFault {
  column: string | null
  message: string
}

/** The columns of a file in their order, null for those that are passed over; and all that is wrong with its header. */
export async function readHeader(
  ctx: Context,
  { type, action }: { type: Type; action: Action },
  cells: readonly string[],
): Promise<{ columns: (Column | null)[]; faults: HeaderFault[] }> {
  const known = await columnsOf(ctx, type)
  // With the column of our own reports, whose rows are mended and sent again.
  const passed = new Set(['error', ...(await exported[type](ctx)).map(({ name }) => name)])
  const key = keyColumns[type][action]
  const faults: HeaderFault[] = []
  const seen = new Set<string>()
  const columns = cells.map((cell, index): Column | null => {
    const name = cell.trim()
    const told = name.length > maxToldLength ? `${name.slice(0, maxToldLength)}…` : name
    if (faults.length >= maxFaults) return null
    if (name === '') faults.push({ column: null, message: `Column ${index + 1} has no name.` })
    else if (seen.has(name)) faults.push({ column: told, message: `The column ${told} occurs twice.` })
    else if (!known.has(name) && !passed.has(name))
      faults.push({ column: told, message: `Unknown column ${told}.${didYouMean(name, known.keys())}` })
    seen.add(name)
    // Of a record that goes only its key matters.
    return action === 'delete' && name !== key ? null : (known.get(name) ?? null)
  })
  const wanted = needed(type, action)
  if (faults.length < maxFaults && !wanted.some((each) => seen.has(each)))
    faults.push({ column: key, message: `The column ${wanted.join(' or ')} is missing.` })
  return { columns, faults }
}

const maxFaults = 100
/** Characters of a name that is told. */
const maxToldLength = 100

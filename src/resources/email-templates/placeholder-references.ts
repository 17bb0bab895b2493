// The custom attributes that the placeholders of a text name.
import type { Context } from '../../kernel/context.ts'
import type { StoredReference } from '../../kernel/history/stored-references.ts'
import { attributeSet, type EntityType } from '../attributes/attribute-set.ts'
import { referencesToAttribute } from '../attributes/references.ts'
import { rawSuffix } from './placeholders.ts'
import { placeholdersIn } from './unknown-placeholders.ts'

export async function referencesInText(ctx: Context, field: string, text: string): Promise<StoredReference[]> {
  const names = placeholdersIn(text)
  if (names.length === 0) return []
  const { own } = await attributeSet(ctx)
  return names.flatMap((name) => {
    const [entity = '', code] = name.replace(rawSuffix, '').split('.')
    const attribute = own.get(entity as EntityType)?.find((each) => each.code === code)
    return attribute ? referencesToAttribute(field, attribute) : []
  })
}

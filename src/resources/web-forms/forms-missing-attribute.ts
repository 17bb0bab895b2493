// Warns about web forms without a field for an attribute that has become required. app.ts passes
// this function to the attributes folder, which may not import web forms.
import { type Context, canCall, type Warning } from '../../kernel/context.ts'
import { loadFormAttributes, missingAttributes } from './missing-attributes.ts'
import { webForms } from './resource.ts'

/**
 * Returns one warning for each active form without a field for the attribute. Callers who may not
 * read forms get one warning that names no form.
 */
export async function formsLacking(ctx: Context, attributeId: number): Promise<Warning[]> {
  const rows = await ctx.db.selectFrom('web_forms').select('id').where('is_active', '=', 1).orderBy('id').execute()
  const forms = await webForms.getMany(
    ctx,
    rows.map(({ id }) => id),
  )
  const known = await loadFormAttributes(ctx)
  const names = [...forms.values()]
    .filter((form) => missingAttributes(known, form).some(({ id }) => id === attributeId))
    .map(({ title }) => title)
  const subjects = canCall(ctx, webForms.getOperation)
    ? names.map((name) => `The web form ${name} does not`)
    : ['Not every web form does']
  return names.length === 0
    ? []
    : subjects.map((who) => ({
        field: 'is_required',
        message: `${who} ask for it. Submissions without it are accepted.`,
      }))
}

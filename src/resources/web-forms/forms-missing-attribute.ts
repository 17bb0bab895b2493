// Warns about forms that lack an attribute that has become required. app.ts hands this to
// attributes, which may not import web forms.
import { type Context, canCall, type Warning } from '../../kernel/context.ts'
import { loadFormAttributes, missingAttributes } from './missing-attributes.ts'
import { webForms } from './resource.ts'

/**
 * One warning per active form that lacks the attribute; titles only for callers who may read forms.
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
  const told = canCall(ctx, webForms.getOperation)
    ? names.map((name) => `The web form ${name} does not`)
    : ['Not every web form does']
  return names.length === 0
    ? []
    : told.map((who) => ({ field: 'is_required', message: `${who} ask for it. Submissions without it are accepted.` }))
}

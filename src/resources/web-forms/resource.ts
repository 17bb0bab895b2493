// The configuration of web forms, which are public forms that create persons and leads.
import { randomBytes } from 'node:crypto'
import type { Schema } from '../../contract/types.ts'
import { warn } from '../../kernel/context.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { textKey } from '../../kernel/values/names.ts'
import { languageColumn } from '../persons/language.ts'
import { loadFields, planFields, referencesInDefaults, replacingInDefaults, saveFields } from './fields.ts'
import { loadFormAttributes, missingAttributeWarnings } from './missing-attributes.ts'

type WebForm = Schema<'WebForm'>
type Body = Schema<'WebFormUpdate'>
type Row = { id: number; create_lead: number; submit_success_action: string; submit_success_content: string }

function checkSuccess({ current, errors }: Pick<Writing<Row>, 'current' | 'errors'>, body: Body): void {
  const action = body.submit_success_action ?? current?.submit_success_action
  const content = body.submit_success_content ?? current?.submit_success_content ?? ''
  if (action !== 'redirect') return
  if (!URL.canParse(content) || !/^https?:$/.test(new URL(content).protocol))
    errors.invalid('submit_success_content', 'Must be an http or https URL to go to.')
}

export const webForms = defineResource({
  noun: 'web form',
  table: 'web_forms',
  externalIds: { table: 'web_form_external_ids', column: 'web_form_id' },
  operations: {
    list: 'listWebForms',
    get: 'getWebForm',
    create: 'createWebForm',
    update: 'updateWebForm',
    delete: 'deleteWebForm',
  },
  rows: (_ctx, db) => db.selectFrom('web_forms').selectAll('web_forms'),
  sort: { id: 'web_forms.id', title: 'web_forms.title_key', created_at: 'web_forms.created_at' },
  filter: {
    title: textField('web_forms.title_key'),
    form_id: valueField('web_forms.form_id'),
    create_lead: flagField('web_forms.create_lead'),
  },
  search: [{ key: 'web_forms.title_key' }, { text: 'web_forms.description' }],
  governs: ['submit_success_action', 'create_lead'],
  withoutColumn: { attributes: 'rows' },
  toRow: async (body: Body, writing) => {
    const { current } = writing
    checkSuccess(writing, body)
    const fields = await planFields(writing, body)
    const createsLead = body.create_lead ?? current?.create_lead === 1
    const isSet = (sent: boolean | undefined): number | undefined => (sent === undefined ? undefined : Number(sent))
    const columns = {
      ...(!current && { form_id: randomBytes(16).toString('hex') }),
      title: body.title,
      title_key: body.title === undefined ? undefined : textKey(body.title),
      description: body.description,
      language: languageColumn(body.language, writing.errors),
      submit_button_label: body.submit_button_label,
      submit_success_action: body.submit_success_action,
      submit_success_content: body.submit_success_content,
      create_lead: isSet(body.create_lead),
      background_color: body.background_color,
      form_background_color: body.form_background_color,
      form_title_color: body.form_title_color,
      form_submit_button_color: body.form_submit_button_color,
      attribute_label_color: body.attribute_label_color,
      is_active: isSet(body.is_active),
    }
    return {
      columns,
      save: async (ctx, id) => {
        if (fields) await saveFields(ctx, id, fields)
        const stored = { create_lead: createsLead, attributes: (await loadFields(ctx, [id])).get(id) ?? [] }
        for (const { field, message } of missingAttributeWarnings(await loadFormAttributes(ctx), stored))
          warn(ctx, field, message)
      },
    }
  },
  toReply: (row): WebForm => ({
    id: row.id,
    form_id: row.form_id,
    title: row.title,
    description: row.description,
    language: row.language,
    submit_button_label: row.submit_button_label,
    submit_success_action: row.submit_success_action as WebForm['submit_success_action'],
    submit_success_content: row.submit_success_content,
    create_lead: row.create_lead === 1,
    background_color: row.background_color,
    form_background_color: row.form_background_color,
    form_title_color: row.form_title_color,
    form_submit_button_color: row.form_submit_button_color,
    attribute_label_color: row.attribute_label_color,
    attributes: [],
    warnings: [],
    is_active: row.is_active === 1,
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies) => {
    const fields = await loadFields(
      ctx,
      replies.map(({ id }) => id),
    )
    const known = await loadFormAttributes(ctx)
    for (const reply of replies) {
      reply.attributes = fields.get(reply.id) ?? []
      reply.warnings = missingAttributeWarnings(known, reply)
    }
  },
  refersTo: (ctx, { id }) => referencesInDefaults(ctx, id),
  replacing: async (ctx, { id }, named, by) => ({ attributes: await replacingInDefaults(ctx, id, named, by) }),
})

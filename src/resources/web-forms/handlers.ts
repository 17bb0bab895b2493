// The public API of web forms: definition, page, script and submission.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { attempt } from '../../kernel/auth/attempts.ts'
import type { Context } from '../../kernel/context.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler, Handlers, PublicGuards } from '../../kernel/handler.ts'
import { embeddedScript } from './browser-script.ts'
import { answerPage, formPage } from './page.ts'
import { loadPublicForm, type PublicForm, presentPublicForm, requireActiveForm } from './public-form.ts'
import { submit } from './submission.ts'
import { inLanguage } from './visitor-errors.ts'

/** The maximum number of submissions per minute from one IP address. */
const limit = { scope: 'web-form', most: 10, windowMs: 60_000 }

/**
 * Runs before the server reads the request body. Throws 404 unless the form is active, and limits
 * the rate of submissions.
 */
async function admit(ctx: Context): Promise<void> {
  await requireActiveForm(ctx, ctx.path.split('/').at(-1) ?? '')
  await attempt(ctx, limit)
}

export const publicGuards: PublicGuards = { submitWebForm: admit }

const zoneOf = ({ services }: Context): string => services.config.timezone

const getPublicWebForm: Handler<'getPublicWebForm'> = async (ctx, { params }) => ({
  data: presentPublicForm(await loadPublicForm(ctx, params.form_id)),
})

const getWebFormPage: Handler<'getWebFormPage'> = async (ctx, { params }) =>
  formPage(await loadPublicForm(ctx, params.form_id), zoneOf(ctx))

const getWebFormScript: Handler<'getWebFormScript'> = async (ctx, { params }) => {
  const form = await loadPublicForm(ctx, params.form_id)
  const body = embeddedScript(form, ctx.baseUrl + pathTo(operations.submitWebForm, form.formId), zoneOf(ctx))
  return download({
    mediaType: 'text/javascript; charset=utf-8',
    body,
    headers: { 'cache-control': 'no-cache', 'cross-origin-resource-policy': 'cross-origin' },
  })
}

const submitWebForm: Handler<'submitWebForm'> = async (ctx, { params, body }) => {
  const form = await loadPublicForm(ctx, params.form_id)
  // The field `website` is invisible, so only bots fill in this field. A bot gets the usual reply,
  // but nothing is stored.
  if (body.website == null) await inLanguage(form.texts, () => submit(ctx, form, body))
  const answer = successReply(form)
  return preferred(ctx, ['application/json', 'text/html']) === 'text/html' ? answerPage(form, answer) : answer
}

const successReply = ({ texts, success: { action, content } }: PublicForm): { message: string; redirect?: string } =>
  action === 'redirect' ? { message: texts.say('form.thanks'), redirect: content } : { message: content }

export const handlers = {
  getPublicWebForm,
  getWebFormPage,
  getWebFormScript,
  submitWebForm,
} satisfies Partial<Handlers>

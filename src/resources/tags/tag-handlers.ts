// Handlers that list, attach and detach the tags of a record, for every taggable
// resource.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound, Problem, ValidationErrors } from '../../kernel/errors.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { transaction } from '../../kernel/write/write.ts'
import { findOrCreateTag } from './resource.ts'
import { linkTag, type Taggable, tagRefs, tagsOf, unlinkTag } from './tag-links.ts'

const maxTags = 50

type Target = Pick<Resource<unknown, never>, 'assertVisible' | 'withVersionOf' | 'touch'>
interface Attach {
  params: { id: number }
  body: Schema<'TagAttach'>
}

/** Creates the handlers `list`, `attach` and `detach` for the tags of one taggable resource. */
export function createTagHandlers(entity: Taggable, target: Target) {
  return {
    list: (ctx: Context, { params }: { params: { id: number } }) =>
      target.withVersionOf(ctx, params.id, async () => ({ data: await tagsOf(ctx, entity, params.id) })),
    attach: (ctx: Context, { params, body }: Attach) =>
      transaction(ctx, async (ctx) => {
        await target.assertVisible(ctx, params.id)
        const tagId = await chosenTagId(ctx, body)
        const present = await tagsOf(ctx, entity, params.id)
        if (!present.some((tag) => tag.id === tagId)) {
          if (present.length >= maxTags) throw new Problem('state_conflict', `A record has at most ${maxTags} tags.`)
          await linkTag(ctx, entity, params.id, tagId, (await tagRefs(ctx, [tagId]))[0])
          await target.touch(ctx, params.id)
        }
        return { data: await tagsOf(ctx, entity, params.id), message: 'Tag attached.' }
      }),
    detach: (ctx: Context, { params }: { params: { id: number; tag_id: number } }) =>
      transaction(ctx, async (ctx) => {
        await target.assertVisible(ctx, params.id)
        const tag = (await tagsOf(ctx, entity, params.id)).find(({ id }) => id === params.tag_id)
        if (!tag) throw notFound('attached tag', params.tag_id)
        await unlinkTag(ctx, entity, params.id, tag)
        await target.touch(ctx, params.id)
        return { message: 'Tag detached.' }
      }),
  }
}

async function chosenTagId(ctx: Context, body: Schema<'TagAttach'>): Promise<number> {
  if (!('tag_id' in body)) return findOrCreateTag(ctx, body.name)
  const errors = new ValidationErrors()
  if ((await tagRefs(ctx, [body.tag_id])).length === 0) errors.invalid('tag_id', `No tag has id ${body.tag_id}.`)
  errors.throwIfAny()
  return body.tag_id
}

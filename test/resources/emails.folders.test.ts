// The visibility of mails: all combinations of folder permissions and folders,
// and of views and owners. A hidden mail appears in no operation.
import { beforeAll, describe, expect, it } from 'vitest'
import { systemContext } from '../../src/kernel/context.ts'
import { emails } from '../../src/resources/emails/resource.ts'
import { start } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const keyOf = {
  inbox: 'mail.inbox',
  important: 'mail.inbox',
  starred: 'mail.inbox',
  spam: 'mail.inbox',
  draft: 'mail.draft',
  outbox: 'mail.outbox',
  sent: 'mail.sent',
  trash: 'mail.trash',
} as const
type Folder = keyof typeof keyOf
const folders = Object.keys(keyOf) as Folder[]
const keys = [...new Set(Object.values(keyOf))]

const server = useSharedServer()

let count = 0

interface About {
  folders: readonly Folder[]
  user_id?: number | null
  lead_id?: number | null
  person_id?: number | null
  parent_id?: number
  source?: 'web' | 'email'
}

/** Inserts a received or written mail directly into the database. */
async function mail({ folders, parent_id, ...about }: About): Promise<number> {
  const { db } = server.store
  const messageId = `m${++count}@example.com`
  const { id } = await db
    .insertInto('emails')
    .values({
      subject: `Mail ${count}`,
      subject_key: `mail ${count}`,
      source: 'web',
      sender_type: 'user',
      status: 'sent',
      bcc: '["hidden@example.com"]',
      message_id: messageId,
      message_id_key: messageId,
      parent_id: parent_id ?? null,
      created_at: start,
      updated_at: start,
      ...about,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  await db
    .updateTable('emails')
    .set({ thread_id: parent_id ?? id })
    .where('id', '=', id)
    .execute()
  await db
    .insertInto('email_folders')
    .values(folders.map((folder) => ({ email_id: id, folder })))
    .execute()
  return id
}

describe('the keys of folders', () => {
  const places: Folder[][] = [
    ...folders.map((folder) => [folder]),
    ['inbox', 'trash'],
    ['draft', 'starred'],
    ['sent', 'outbox'],
  ]
  const subsets = Array.from({ length: 2 ** keys.length }, (_, bits) => keys.filter((_key, n) => (bits & (2 ** n)) > 0))
  const ids = new Map<number, Folder[]>()
  beforeAll(async () => {
    for (const place of places) ids.set(await mail({ folders: place, user_id: 1 }), place)
  })

  it.each(subsets)('%s %s %s %s %s open the mails that lie in one of their folders, and no others', async (...open) => {
    const held = open.filter((key): key is (typeof keys)[number] => key !== undefined)
    const viewer = await addUser(server, `Holds ${held.join(' ')}`, {
      permissions: ['mail', 'mail.view', 'mail.edit', 'mail.delete', ...held],
    })
    const wanted = [...ids].filter(([, place]) => place.some((folder) => held.includes(keyOf[folder])))
    const { body } = await viewer.get('/emails?per_page=100&sort=id')
    expect(body.data.map(({ id }: { id: number }) => id)).toEqual(wanted.map(([id]) => id))
    expect(body.meta.total).toBe(wanted.length)
    for (const id of ids.keys()) {
      const isOpen = wanted.some(([each]) => each === id)
      expect.soft((await viewer.get(`/emails/${id}`)).status).toBe(isOpen ? 200 : 404)
    }
    const hidden = [...ids.keys()].find((id) => !wanted.some(([each]) => each === id))
    if (hidden === undefined) return
    server.events()
    expect((await viewer.put(`/emails/${hidden}`, { is_read: true })).status).toBe(404)
    expect((await viewer.delete(`/emails/${hidden}?type=delete`)).status).toBe(404)
    expect(server.events()).toEqual([])
  })

  it('open nothing by themselves to a role without the permission for mail', async () => {
    const viewer = await addUser(server, 'No mail', { permissions: ['leads'] })
    expect((await viewer.get('/emails')).status).toBe(403)
  })

  it('do not bind the answer to a change: the mail that was moved is shown once more', async () => {
    const id = await mail({ folders: ['inbox'], user_id: 1, source: 'email' })
    const viewer = await addUser(server, 'Mover', { permissions: ['mail.edit', 'mail.inbox', 'mail.view'] })
    const { status, body } = await viewer.put(`/emails/${id}`, { folders: ['trash'] })
    expect([status, body.data.folders]).toEqual([200, ['trash']])
    expect((await viewer.get(`/emails/${id}`)).status).toBe(404)
  })
})

describe('the owner, lead or person of a mail', () => {
  /** The mails by name, each with the viewers that must see it. */
  const mails: [name: string, id: number, alone: boolean, inGroup: boolean, needsInbox: boolean][] = []
  const views = ['global', 'group', 'individual'] as const

  beforeAll(async () => {
    for (const view of views) {
      for (const inbox of [true, false]) {
        await addUser(server, `${view} ${inbox}`, {
          view,
          group: 'Sales',
          permissions: ['mail', 'mail.view', 'mail.sent', ...(inbox ? ['mail.inbox'] : [])],
        })
      }
    }
    const stranger = (await addUser(server, 'Stranger')).id
    const colleague = (await addUser(server, 'Colleague', { group: 'Sales' })).id
    const { db } = server.store
    const owners = { stranger, colleague }
    const make = given(server.admin)
    const of = async (owner: keyof typeof owners) => {
      const lead = await make.lead({ user_id: owners[owner] })
      const person = await make.person({ user_id: owners[owner] })
      return { lead: lead.id, person: person.id }
    }
    const [theirs, ours] = [await of('stranger'), await of('colleague')]
    const add = async (
      name: string,
      about: Omit<About, 'folders'>,
      alone: boolean,
      inGroup: boolean,
      needsInbox = false,
    ) => {
      const folders: Folder[] = ['inbox', 'sent']
      mails.push([name, await mail({ folders, user_id: null, ...about }), alone, inGroup, needsInbox])
    }
    await add('of a stranger', { user_id: stranger }, false, false)
    await add('of a colleague', { user_id: colleague }, false, true)
    await add('of a stranger about a lead of a colleague', { user_id: stranger, lead_id: ours.lead }, false, true)
    await add('of a stranger about a person of a colleague', { user_id: stranger, person_id: ours.person }, false, true)
    await add('received, about a lead of a stranger', { source: 'email', lead_id: theirs.lead }, false, false)
    await add('received, about a person of a stranger', { source: 'email', person_id: theirs.person }, false, false)
    await add('received, about a person of a colleague', { source: 'email', person_id: ours.person }, false, true)
    await add('received, without an owner', { source: 'email' }, true, true, true)
    await add('received, of a stranger', { source: 'email', user_id: stranger }, false, false)
    await add('written by a deleted user', { source: 'web' }, false, false)
    for (const view of views) {
      for (const inbox of [true, false]) {
        const name = `${view} ${inbox}`
        const user = await db.selectFrom('users').select('id').where('name', '=', name).executeTakeFirstOrThrow()
        await add(`of ${name}`, { user_id: user.id }, false, true)
      }
    }
  })

  it.each(views.flatMap((view) => [[view, true] as const, [view, false] as const]))(
    'decide for a %s view (may open the inbox: %s)',
    async (view, inbox) => {
      const name = `${view} ${inbox}`
      const { db } = server.store
      const { id } = await db.selectFrom('users').select('id').where('name', '=', name).executeTakeFirstOrThrow()
      const viewer = await server.as(id)
      const first = mails[0]?.[1] ?? 0
      const query = `id=${mails.map(([, id]) => id).join(',')}&per_page=100`
      const { body } = await viewer.get(`/emails?${query}`)
      const seen = new Set(body.data.map(({ id }: { id: number }) => id))
      const names = mails
        .filter(([each, , alone, inGroup, needsInbox]) => {
          if (view === 'global') return true
          const own = each === `of ${name}`
          return own || ((view === 'group' ? inGroup : alone) && (!needsInbox || inbox))
        })
        .map(([each]) => each)
      expect(mails.filter(([, id]) => seen.has(id)).map(([each]) => each)).toEqual(names)
      expect(body.meta.total).toBe(names.length)
      expect((await viewer.get(`/emails/${first}`)).status).toBe(view === 'global' ? 200 : 404)
    },
  )
})

describe('a mail out of sight', () => {
  it('is not in a thread, not among the answers, no parent, and fails in mass operations as if it were not there', async () => {
    const root = await mail({ folders: ['inbox'], user_id: 1 })
    const hidden = await mail({ folders: ['trash'], user_id: 1, parent_id: root })
    const answer = await mail({ folders: ['sent'], user_id: 1, parent_id: root })
    const viewer = await addUser(server, 'Half', {
      permissions: ['mail', 'mail.view', 'mail.edit', 'mail.delete', 'mail.compose', 'mail.inbox', 'mail.sent'],
    })
    const thread = await viewer.get(`/emails/${root}/thread`)
    expect(thread.body.data.map(({ id }: { id: number }) => id)).toEqual([root, answer])
    const shown = await viewer.get(`/emails/${root}?include=children`)
    expect(shown.body.data.children.map(({ id }: { id: number }) => id)).toEqual([answer])
    const reply = { html: 'x', to: ['a@example.com'], parent_id: hidden }
    expect(Object.keys((await viewer.post('/emails', reply)).body.errors)).toEqual(['parent_id'])
    for (const [path, body] of [
      ['/emails/mass-update', { is_read: false }],
      ['/emails/mass-delete', { type: 'delete' }],
    ] as const) {
      const { status, body: problem } = await viewer.post(path, { ids: [hidden], ...body })
      expect.soft([status, problem.failed]).toMatchObject([422, [{ id: hidden, status: 404 }]])
    }
    const paths = ['thread', 'tags', 'history', 'attachments/1/download'].map((name) => `/emails/${hidden}/${name}`)
    for (const path of paths) expect.soft([path, (await viewer.get(path)).status]).toEqual([path, 404])
    for (const path of ['send', 'untrash'].map((name) => `/emails/${hidden}/${name}`))
      expect.soft([path, (await viewer.post(path)).status]).toEqual([path, 404])
    // A reply shows its hidden parent only as a reference with id and label.
    const below = await mail({ folders: ['inbox'], user_id: 1, parent_id: hidden })
    const { body } = await viewer.get(`/emails/${below}?include=parent`)
    expect(Object.keys(body.data.parent).sort()).toEqual(['from', 'id', 'subject'])
  })
})

describe('hidden recipients', () => {
  it('are shown only to users', async () => {
    const id = await mail({ folders: ['sent'], user_id: 1 })
    expect((await server.admin.get(`/emails/${id}`)).body.data.bcc).toEqual(['hidden@example.com'])
    expect((await emails.get(systemContext(server.app.services, 'cli'), id)).bcc).toEqual([])
  })
})

// The event emitter: names and patterns, order, vetoes, and failing listeners, which must not stop
// other listeners.
import { describe, expect, it } from 'vitest'
import type { Log } from '../../../src/kernel/context.ts'
import { type AccordEvent, createEmitter, Veto } from '../../../src/kernel/write/events.ts'
import { eventAliases } from '../../../src/resources/system/event-patterns.ts'

const event = (name: string): AccordEvent => ({
  name,
  entityType: 'leads',
  entityId: 7,
  actor: { type: 'system', id: null, name: 'system' },
  tokenId: null,
  requestId: 'test',
  origin: 'api',
  timestamp: '2026-03-01T09:30:00.000Z',
})

function emitter() {
  const errors: string[] = []
  const log: Log = {
    error: (_about, message) => void errors.push(message),
    warn: () => undefined,
    info: () => undefined,
  }
  const events = createEmitter(() => log, eventAliases)
  const heard: string[] = []
  return { events, errors, heard, hear: (what: string) => () => void heard.push(what) }
}

describe('on', () => {
  it.each([
    ['lead.create.after', 'lead.create.after', true],
    ['lead.*.after', 'lead.update.after', true],
    ['lead.*.after', 'lead.update.before', false],
    ['*.create.after', 'lead.create.after', true],
    ['*.create.after', 'contacts.person.create.after', false],
    ['contacts.*.create.*', 'contacts.person.create.before', true],
    ['lead.*', 'lead.create.after', false],
    ['*', 'contacts.person.create.after', true],
    ['lead.create', 'lead.create.after', false],
    ['leadXcreate.after', 'lead.create.after', false],
    ['contact.person.create.after', 'contacts.person.create.after', true],
    ['settings.products.update.after', 'product.update.after', true],
    ['user.admin.delete.*', 'settings.user.delete.before', true],
    ['lead.product.delete.after', 'leads.product.delete.after', true],
    ['contact.organization.delete.before', 'contacts.organization.delete.before', true],
    ['warehouse.tag.*.after', 'warehouses.tag.create.after', true],
    ['mails.tag.delete.after', 'emails.tag.delete.after', true],
    ['email.trash.after', 'email.update.after', true],
    ['email.trash.after', 'email.delete.after', false],
  ])('%s, told of %s: %s', (pattern, name, isHeard) => {
    const { events, heard, hear } = emitter()
    events.on(pattern, hear('it'))
    events.emit(event(name))
    expect(heard).toEqual(isHeard ? ['it'] : [])
  })

  it('calls listeners in the order they came, whatever their pattern', () => {
    const { events, heard, hear } = emitter()
    events.on('*', hear('first'))
    events.on('lead.create.after', hear('second'))
    events.on('lead.*.after', hear('third'))
    events.emit(event('lead.create.after'))
    expect(heard).toEqual(['first', 'second', 'third'])
  })

  it('answers with the way out', () => {
    const { events, heard, hear } = emitter()
    const leave = events.on('*', hear('it'))
    leave()
    events.emit(event('lead.create.after'))
    expect(heard).toEqual([])
  })
})

describe('a before listener', () => {
  it('refuses by throwing, and those behind it are not asked', () => {
    const { events, heard, hear } = emitter()
    events.on('lead.create.before', () => {
      throw new Veto('Not today.')
    })
    events.on('lead.create.before', hear('behind'))
    expect(() => events.emit(event('lead.create.before'))).toThrow('Not today.')
    expect(heard).toEqual([])
  })

  it('cannot refuse later: a rejection is logged and does not end the process', async () => {
    const { events, errors } = emitter()
    events.on('lead.create.before', async () => {
      throw new Veto('Too late.')
    })
    events.emit(event('lead.create.before'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(errors).toHaveLength(1)
  })
})

describe('an after listener', () => {
  it('that throws or rejects is logged, and the next ones are told all the same', async () => {
    const { events, errors, heard, hear } = emitter()
    events.on('lead.create.after', () => {
      throw new Error('broken')
    })
    events.on('lead.create.after', async () => {
      throw new Error('broken later')
    })
    events.on('lead.create.after', hear('third'))
    events.emit(event('lead.create.after'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(heard).toEqual(['third'])
    expect(errors).toEqual(['An after listener failed.', 'An after listener failed.'])
  })
})

describe('isHeard', () => {
  it('says whether anybody listens to a name by now, however they wrote it', () => {
    const { events, hear } = emitter()
    const names = ['lead.create.before', 'lead.create.after', 'leads.product.create.before']
    const heard = () => names.map((name) => events.isHeard(name))
    expect(heard()).toEqual([false, false, false])
    const first = events.on('lead.*.before', hear('a'))
    const second = events.on('lead.*.before', hear('b'))
    const alias = events.on('lead.product.create.before', hear('c'))
    expect(heard()).toEqual([true, false, true])
    first()
    expect(heard()).toEqual([true, false, true])
    second()
    alias()
    expect(heard()).toEqual([false, false, false])
    events.on('*', hear('d'))
    expect(heard()).toEqual([true, true, true])
  })
})

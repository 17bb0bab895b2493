// Rules about permissions, token abilities and events of operations.

import { bareVerbs } from '../../src/contract/bare-verbs.ts'
import { nearest } from '../../src/contract/input/did-you-mean.ts'
import { eventBases } from '../events.ts'
import type { Rule } from '../rule.ts'

const writing = new Set(['post', 'put', 'delete'])

export const permissionsAreSettled: Rule = ({ operations, permissionKeys, report }) => {
  for (const { id, operation, at, isPublic } of operations) {
    const { 'x-permission': permission, 'x-any-user': anyUser, security } = operation
    const answers = [permission !== undefined, anyUser !== undefined, isPublic].filter(Boolean).length
    if (answers !== 1) {
      report(
        at,
        id,
        `${answers === 0 ? 'nothing says' : 'more than one line says'} who may call it; write exactly one of ` +
          'x-permission: <key>, x-any-user: <sentence why>, security: [].',
      )
    }
    if (security !== undefined && !isPublic) {
      report(
        [...at, 'security'],
        id,
        'its own security overrides the common one; delete it, or write [] if the operation is public.',
      )
    }
    if (permission !== undefined && permissionKeys.length > 0 && !permissionKeys.includes(permission)) {
      report(
        [...at, 'x-permission'],
        id,
        `no role can hold the key ${permission};${suggest(permission, permissionKeys)}`,
      )
    }
    if (anyUser !== undefined && !isSentence(anyUser)) {
      report([...at, 'x-any-user'], id, 'x-any-user is not a sentence; say why every signed-in user may call it.')
    }
  }
}

/**
 * The `x-ability` of an operation that accepts a token with any ability to read, or to write. It
 * checks the ability for each type of record itself.
 */
const anyOf = { read: 'any:read', write: 'any:write' } as const

export const abilitiesAreSettled: Rule = ({ operations, abilityAreas, report }) => {
  for (const { id, operation, at, isPublic, method } of operations) {
    const { 'x-ability': ability, 'x-no-event': noEvent } = operation
    if (isPublic && ability === undefined) continue
    if (isPublic) report([...at, 'x-ability'], id, 'a public operation checks no token; delete x-ability.')
    else if (ability === undefined) {
      report(at, id, 'no x-ability, so every token could call it; write <area>:read or <area>:write.')
    } else {
      const [area = '', action] = String(ability).split(':')
      // A POST that only reads takes its question in the body.
      const isQuestion = method === 'post' && noEvent !== undefined && action === 'read'
      const expected = writing.has(method) && !isQuestion ? 'write' : 'read'
      if (ability === anyOf[expected]) continue
      if (abilityAreas.length > 0 && !abilityAreas.includes(area)) {
        report([...at, 'x-ability'], id, `tokens know no area ${area};${suggest(area, abilityAreas)}`)
      } else if (action !== expected) {
        report(
          [...at, 'x-ability'],
          id,
          `${method.toUpperCase()} is covered by ${area}:${expected}, not ${ability}; write that.`,
        )
      }
    }
  }
}

export const eventsAreSettled: Rule = ({ operations, report }) => {
  for (const { id, operation, at, method } of operations) {
    const { 'x-events': events, 'x-no-event': none } = operation
    const writes = writing.has(method)
    const isFact =
      Array.isArray(events) && events.every((event) => bareVerbs.includes(String(event).replace(/.*\./, '')))
    if (!writes && ((events !== undefined && !isFact) || none !== undefined)) {
      report(
        at,
        id,
        'reading changes nothing and emits no event but a fact, such as data_transfer.exports.started; delete x-events or x-no-event.',
      )
    }
    if (writes && (events === undefined) === (none === undefined)) {
      report(
        at,
        id,
        'a writing operation says which events it emits or why none: exactly one of x-events and x-no-event.',
      )
    }
    if (none !== undefined && !isSentence(none)) {
      report([...at, 'x-no-event'], id, 'x-no-event is not a sentence; say why there is no event.')
    }
    if (events !== undefined && (!Array.isArray(events) || events.length === 0)) {
      report([...at, 'x-events'], id, 'x-events is a list of base names, the main event first; write at least one.')
    }
    for (const [index, event] of (Array.isArray(events) ? events : []).entries()) {
      if (eventBases.includes(event)) continue
      report(
        [...at, 'x-events', index],
        id,
        `the server emits no event ${event};${suggest(String(event), eventBases)} A new one begins in codegen/events.ts.`,
      )
    }
  }
}

/** A client that got no answer sends a POST again, and only the key prevents a second change. */
export const retriesAreSafe: Rule = ({ operations, report }) => {
  for (const { id, operation, at, method, isPublic, parameters } of operations) {
    if (method !== 'post' || isPublic || operation['x-events'] === undefined) continue
    if (!parameters.some(({ part }) => part.name === 'Idempotency-Key')) {
      report(
        at,
        id,
        'a client that repeats it changes things twice; add the parameter ' +
          "$ref: '#/components/parameters/IdempotencyKey'.",
      )
    }
  }
}

export const servedByDocs: Rule = ({ operations, report }) => {
  for (const { id, operation, at } of operations) {
    const by = operation['x-served-by']
    if (by === undefined || by === 'docs') continue
    report([...at, 'x-served-by'], id, `${by} serves nothing; write docs, or delete the line when a handler answers.`)
  }
}

function isSentence(value: unknown): boolean {
  return typeof value === 'string' && value.trim().includes(' ')
}

export function suggest(word: string | undefined, known: readonly string[]): string {
  const guess = nearest(word ?? '', known)
  return guess
    ? ` did you mean ${guess}?`
    : ` known are ${known.slice(0, 8).join(', ')}${known.length > 8 ? ' …' : ''}.`
}

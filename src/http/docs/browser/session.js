// @ts-check
// The sign-in form and its state. The token is in sessionStorage, which survives a reload and ends
// with the tab.
import { byId, copy } from './dom.js'

const tokenKey = 'accord-token'
/** Set while the token was created by this page and not pasted. */
const createdKey = 'accord-token-created'
const cookieKey = 'accord-cookie-of'

export const token = () => sessionStorage.getItem(tokenKey)
const isByCookie = () => sessionStorage.getItem(cookieKey) !== null

/** @param {string} name */
const cookie = (name) =>
  document.cookie
    .split('; ')
    .find((each) => each.startsWith(`${name}=`))
    ?.slice(name.length + 1)

/** Returns the value of the CSRF cookie. Its name depends on the protocol. */
const csrfToken = () => cookie('__Host-XSRF-TOKEN') ?? cookie('XSRF-TOKEN') ?? ''

/**
 * Completes a request of "Try it out". Requests JSON, because a 401 would otherwise be an HTML
 * page. Adds the CSRF token to writes without a bearer token.
 * @param {{ method?: string, headers: Record<string, string> }} request
 */
export function prepareRequest(request) {
  const headers = request.headers
  const accepted = headers.accept ?? headers.Accept ?? '*/*'
  delete headers.Accept
  if (accepted === '*/*') headers.accept = 'application/json'
  else headers.accept = accepted.includes('json') ? accepted : `${accepted}, application/json;q=0.5`
  const isWrite = !['GET', 'HEAD'].includes(String(request.method).toUpperCase())
  const hasToken = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  if (isWrite && !hasToken && csrfToken() !== '') headers['X-XSRF-TOKEN'] = csrfToken()
  return request
}

/** @param {string} method @param {string} path @param {object} [body] @param {string} [bearer] */
async function call(method, path, body, bearer) {
  const identity = bearer === undefined ? { 'x-xsrf-token': csrfToken() } : { authorization: `Bearer ${bearer}` }
  const headers = { accept: 'application/json', 'content-type': 'application/json', ...identity }
  const response = await fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const reply = response.status === 204 ? {} : await response.json()
  if (!response.ok) throw new Error(reply.detail ?? reply.message)
  return reply
}

/** @type {((token: string | null) => void)[]} */
const listeners = []

/** @param {(token: string | null) => void} listener Called immediately and after each change. */
export function onToken(listener) {
  listeners.push(listener)
  listener(token())
}

function update() {
  const known = token()
  for (const listener of listeners) listener(known)
  const who = sessionStorage.getItem(cookieKey)
  const isIn = known !== null || who !== null
  byId('authorize').textContent = isIn ? 'Authorized' : 'Authorize'
  byId('authorize').classList.toggle('is-in', isIn)
  byId('signed-in').textContent = known
    ? `Calls send the token ${known.split('|')[0]}|…`
    : who
      ? `Signed in as ${who} with a cookie. Writes send the CSRF token.`
      : ''
  byId('sign-out').hidden = !isIn
  byId('copy-token').hidden = known === null
}

/** @param {string} email @param {string} password @param {string} kind */
async function signIn(email, password, kind) {
  sessionStorage.removeItem(tokenKey)
  if (kind === 'token') {
    const { data } = await call('POST', '/api/admin/login', { email, password, device_name: 'Documentation' })
    sessionStorage.setItem(tokenKey, data.token)
    sessionStorage.setItem(createdKey, 'yes')
    sessionStorage.removeItem(cookieKey)
    return
  }
  await call('GET', '/api/admin/csrf-cookie')
  const { data } = await call('POST', '/api/admin/session', { email, password })
  sessionStorage.setItem(cookieKey, data.name)
}

/**
 * Ends the session, and revokes a token that this page created. A pasted token stays valid, because
 * other programs may use it.
 */
async function signOut() {
  const [wasByCookie, ofToken] = [isByCookie(), token()]
  const wasCreated = sessionStorage.getItem(createdKey) !== null
  for (const key of [tokenKey, createdKey, cookieKey]) sessionStorage.removeItem(key)
  if (wasByCookie) await call('DELETE', '/api/admin/session')
  else if (wasCreated && ofToken !== null) await call('POST', '/api/admin/logout', undefined, ofToken)
}

/** Runs the work of a form and displays its error. @param {() => unknown} work */
async function attempt(work) {
  byId('sign-in-error').textContent = ''
  try {
    await work()
    return true
  } catch (error) {
    byId('sign-in-error').textContent = error instanceof Error ? error.message : String(error)
    return false
  } finally {
    update()
  }
}

export const openSignIn = () => byId('sign-in').showModal()

/** Adds the event listeners of the sign-in dialog. */
export function startSession() {
  update()
  const dialog = byId('sign-in')
  byId('authorize').addEventListener('click', openSignIn)
  byId('sign-in-form').addEventListener('submit', async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault()
    const kind = String(new FormData(byId('sign-in-form')).get('kind'))
    const isDone = await attempt(() => signIn(byId('sign-in-email').value, byId('sign-in-password').value, kind))
    byId('sign-in-password').value = ''
    if (isDone) dialog.close()
  })
  byId('token-form').addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
    event.preventDefault()
    sessionStorage.setItem(tokenKey, byId('token').value.trim())
    sessionStorage.removeItem(createdKey)
    byId('token').value = ''
    update()
    dialog.close()
  })
  byId('sign-out').addEventListener('click', () => attempt(signOut))
  byId('copy-token').addEventListener('click', () => copy(`export ACCORD_TOKEN='${token()}'`, byId('copy-token')))
}

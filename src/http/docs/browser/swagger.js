// @ts-check
// Starts Swagger UI for one operation, with own plug-ins.
import { onToken, prepareRequest } from './session.js'
import { resolved } from './tag-documents.js'
import { tryParts } from './try-parts.js'

/** @typedef {import('./tag-documents.js').Operation} Operation */
/** @typedef {Record<string, any>} Json */

const emptyDocument = {
  openapi: '3.0.3',
  info: { title: 'API', version: '1' },
  servers: [{ url: '/' }],
  paths: {},
  components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
}

/**
 * Returns the operation without what only readers need. A JSON body is typed as text, so its schema
 * is not needed.
 * @param {Operation} found
 */
function formOperation({ operation, schemas }) {
  const { requestBody, responses, parameters, operationId, security } = operation
  const content = Object.entries(requestBody?.content ?? {}).map(([type, media]) => {
    const { schema = {}, ...others } = /** @type {Json} */ (media)
    return [type, { ...others, schema: type.endsWith('json') ? { type: 'object' } : resolved(schema, schemas) }]
  })
  const replies = Object.entries(responses).map(([status, { content: types }]) => [
    status,
    {
      description: '',
      ...(types && { content: Object.fromEntries(Object.keys(types).map((type) => [type, { schema: {} }])) }),
    },
  ])
  return {
    operationId,
    security,
    parameters,
    ...(requestBody && { requestBody: { required: requestBody.required, content: Object.fromEntries(content) } }),
    // Swagger UI marks a reply as undocumented if `responses` has no entry for it.
    responses: { ...Object.fromEntries(replies), default: { description: '' } },
  }
}

/** The plug-in that resolves the operation. It replaces swagger-client. @param {Operation} found */
const resolving = (found) => () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        requestResolvedSubtree:
          (/** @type {any} */ _original, /** @type {any} */ { specActions, specSelectors }) =>
          (/** @type {string[]} */ place) => {
            if (place[0] === 'components')
              return specActions.updateResolvedSubtree(place, specSelectors.specJson().getIn(place).toJS())
            if (specSelectors.specResolvedSubtree(place) === undefined)
              specActions.updateResolvedSubtree(place, formOperation(found))
          },
      },
      wrapSelectors: {
        // The original is slow: it merges the edited values into all parameters and returns one of
        // them.
        parameterWithMetaByIdentity:
          (/** @type {any} */ _original, /** @type {any} */ { Im, specSelectors }) =>
          (/** @type {any} */ state, /** @type {string[]} */ place, /** @type {any} */ wanted) => {
            const key = `${wanted.get('in')}.${wanted.get('name')}`
            const edited = state.getIn(['meta', 'paths', ...place, 'parameters'], Im.Map())
            const found = specSelectors
              .specResolvedSubtree(['paths', ...place, 'parameters'])
              ?.find((/** @type {any} */ each) => `${each.get('in')}.${each.get('name')}` === key)
            return found ? found.merge(edited.get(key), edited.get(`${key}.hash-${wanted.hashCode()}`)) : Im.Map()
          },
      },
    },
  },
})

/**
 * Gives names to the inputs of the form, for screen readers. Swagger UI gives them none.
 * @param {HTMLElement} place
 */
function nameInputs(place) {
  for (const input of place.querySelectorAll('input, select, textarea')) {
    if (input.hasAttribute('aria-label') || input.closest('label')) continue
    const row = input.closest('tr[data-param-name]')?.getAttribute('data-param-name')
    const fallback = input.matches('textarea') ? 'Request body' : 'Media type'
    input.setAttribute('aria-label', row ?? fallback)
  }
}

/**
 * Shows the form of an operation.
 * @param {HTMLElement} place @param {Operation} found
 */
export function startSwaggerUi(place, found) {
  const ui = /** @type {any} */ (window).SwaggerUIBundle({
    domNode: place,
    layout: 'TryOutLayout',
    plugins: [resolving(found), tryParts(found)],
    docExpansion: 'full',
    deepLinking: false,
    displayRequestDuration: true,
    defaultModelsExpandDepth: -1,
    tryItOutEnabled: true,
    persistAuthorization: false,
    validatorUrl: null,
    requestInterceptor: prepareRequest,
  })
  new MutationObserver(() => nameInputs(place)).observe(place, { childList: true, subtree: true })
  // Not the option `spec`, which serializes the document and parses it as YAML.
  ui.specActions.updateJsonSpec(emptyDocument)
  const schema = { type: 'http', scheme: 'bearer' }
  let isSet = false
  onToken((token) => {
    if (isSet) ui.authActions.logout(['bearer'])
    if (token) ui.authActions.authorize({ bearer: { name: 'bearer', schema, value: token } })
    isSet = token !== null
  })
}

// @ts-check
// Starts Swagger UI with own plug-ins. It starts with the list of all operations, and loads the
// document of a tag when one of its operations is opened.
import { operationParts } from './operation-parts.js'
import { onToken, prepareRequest } from './session.js'
import { definitionOf, loadOperation } from './tag-documents.js'

/** @typedef {import('./dom.js').Outline} Outline */
/** @typedef {Record<string, any>} Json */

/**
 * Returns the initial document of Swagger UI, without operations. The list is rendered from the
 * outline, and an operation is added when it is opened.
 * @param {Outline} outline
 */
const emptyDocument = ({ version }) => ({
  openapi: '3.0.3',
  info: { title: 'API', version },
  servers: [{ url: '/' }],
  paths: {},
  components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
})

/**
 * The plug-in that resolves an operation from the document of its tag. It replaces swagger-client.
 * @param {Outline} outline
 */
const resolving = (outline) => () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        requestResolvedSubtree:
          (/** @type {any} */ _original, /** @type {any} */ system) => (/** @type {string[]} */ place) => {
            const [root, path = '', method = ''] = place
            if (root === 'components')
              return system.specActions.updateResolvedSubtree(
                place,
                system.specSelectors.specJson().getIn(place).toJS(),
              )
            const tag = outline.tags.find(({ operations }) =>
              operations.some((each) => each.path === path && each.method === method),
            )
            if (!tag) return undefined
            return loadOperation(tag.slug, path, method).then((operation) => {
              if (system.specSelectors.specResolvedSubtree(place) === undefined)
                system.specActions.updateResolvedSubtree(place, operation)
            })
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
        findDefinition:
          (/** @type {any} */ _original, /** @type {any} */ { Im }) =>
          (/** @type {any} */ _state, /** @type {string} */ name) => {
            const found = definitionOf(name)
            return found && Im.fromJS(found)
          },
      },
    },
  },
})

/** @param {Outline} outline @returns {any} The system of Swagger UI. */
export function startSwaggerUi(outline) {
  const ui = /** @type {any} */ (window).SwaggerUIBundle({
    domNode: document.getElementById('swagger-ui'),
    layout: 'OperationsLayout',
    plugins: [resolving(outline), operationParts(outline)],
    docExpansion: 'none',
    deepLinking: false,
    displayOperationId: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: -1,
    defaultModelExpandDepth: 3,
    tryItOutEnabled: false,
    persistAuthorization: false,
    validatorUrl: null,
    requestInterceptor: prepareRequest,
  })
  // Not the option `spec`, which serializes the document and parses it as YAML.
  ui.specActions.updateJsonSpec(emptyDocument(outline))
  const schema = { type: 'http', scheme: 'bearer' }
  let isSet = false
  onToken((token) => {
    if (isSet) ui.authActions.logout(['bearer'])
    if (token) ui.authActions.authorize({ bearer: { name: 'bearer', schema, value: token } })
    isSet = token !== null
  })
  return ui
}

// @ts-check
// Starts Swagger UI with our plug-in: a skeleton of all operations at first, and the document of a
// tag when an operation of it is opened.
import { operationParts } from './operation-parts.js'
import { onToken, prepareRequest } from './session.js'
import { definitionOf, loadOperation } from './tag-documents.js'

/** @typedef {import('./dom.js').Outline} Outline */
/** @typedef {Record<string, any>} Json */

/** Returns a document with every operation, but with the summaries only. @param {Outline} outline */
function skeletonOf({ tags, version }) {
  /** @type {Json} */
  const paths = {}
  for (const tag of tags)
    for (const { id, method, path, summary, isPublic } of tag.operations) {
      paths[path] ??= {}
      const security = isPublic ? [] : [{ bearer: [] }]
      paths[path][method] = { operationId: id, tags: [tag.name], summary, security, responses: {} }
    }
  return {
    openapi: '3.0.3',
    info: { title: 'API', version },
    servers: [{ url: '/' }],
    tags: tags.map(({ name, description }) => ({ name, description })),
    paths,
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  }
}

/**
 * Resolves an operation from the document of its tag, in place of swagger-client.
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
            const id = system.specSelectors.specJson().getIn([...place, 'operationId'])
            const tag = outline.tags.find(({ operations }) => operations.some((each) => each.id === id))
            if (!tag) return undefined
            return loadOperation(tag.slug, path, method).then((operation) => {
              if (system.specSelectors.specResolvedSubtree(place) === undefined)
                system.specActions.updateResolvedSubtree(place, operation)
            })
          },
      },
      wrapSelectors: {
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
  // As the option `spec`, the document would be written as text and read as YAML.
  ui.specActions.updateJsonSpec(skeletonOf(outline))
  const schema = { type: 'http', scheme: 'bearer' }
  let isSet = false
  onToken((token) => {
    if (isSet) ui.authActions.logout(['bearer'])
    if (token) ui.authActions.authorize({ bearer: { name: 'bearer', schema, value: token } })
    isSet = token !== null
  })
  return ui
}

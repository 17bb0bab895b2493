// Adapts openapi-backend to Fastify and to the contract. Disables its routing and parsing, because
// Fastify matches requests and read-request.ts parses them.
import type { Ajv } from 'ajv'
import { OpenAPIBackend, OpenAPIRouter, OpenAPIValidator, ValidationContext } from 'openapi-backend'
import { newInputAjv } from './ajv.ts'
import type { AnyOperationId } from './operations.gen.ts'
import { requestDefinition } from './request-definition.ts'

/** A request that Fastify has matched. `readRequest` sets `params`, `query` and `requestBody`. */
export interface MatchedRequest {
  readonly operationId: AnyOperationId
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[] | undefined>
  params: Record<string, unknown>
  query: Record<string, unknown>
  requestBody?: unknown
}

type RoutedOperation = ReturnType<OpenAPIRouter['getOperations']>[number]
type ParsedRequest = ReturnType<OpenAPIRouter['parseRequest']>

/**
 * Finds the operation of a request by its id. The base class would compare all paths and parse each
 * request four times.
 */
class MatchedRouter extends OpenAPIRouter {
  readonly #operations: RoutedOperation[]
  readonly #byId: ReadonlyMap<string, RoutedOperation>

  constructor(definition: OpenAPIRouter['definition']) {
    super({ definition })
    this.#operations = super.getOperations()
    this.#byId = new Map(this.#operations.map((each) => [each.operationId ?? '', each]))
  }

  override getOperations(): RoutedOperation[] {
    return this.#operations
  }

  override getOperation(operationId: string): RoutedOperation | undefined {
    return this.#byId.get(operationId)
  }

  override matchOperation(request: unknown): RoutedOperation {
    const { operationId } = request as MatchedRequest
    const operation = this.#byId.get(operationId)
    if (!operation) throw new Error(`404-notFound: the contract has no operation ${operationId}`)
    return operation
  }

  override parseRequest(request: unknown): ParsedRequest {
    return request as ParsedRequest
  }
}

/**
 * Compiles all schemas with two Ajv instances. The base class would create an instance for each
 * schema.
 */
class RequestValidator extends OpenAPIValidator {
  readonly #bodies: Ajv = newInputAjv()
  readonly #parameters: Ajv = newInputAjv({ coerceTypes: true })

  override getAjv(context: ValidationContext): ReturnType<OpenAPIValidator['getAjv']> {
    return context === ValidationContext.RequestBody ? this.#bodies : this.#parameters
  }
}

class ContractBackend extends OpenAPIBackend {
  /**
   * Returns the document unchanged. The base class would process it again to resolve references to
   * other files.
   */
  override async loadDocument(): ReturnType<OpenAPIBackend['loadDocument']> {
    return this.inputDocument as OpenAPIBackend['document']
  }

  override async init(): Promise<this> {
    await super.init()
    const { definition } = this
    this.router = new MatchedRouter(definition)
    this.validator = new RequestValidator({
      definition,
      router: this.router,
      lazyCompileValidators: true,
      coerceTypes: true,
    })
    return this
  }
}

/** Creates the openapi-backend of a contract. The caller registers the handlers. */
export const createOpenApi = async (document: object): Promise<OpenAPIBackend> =>
  new ContractBackend({ definition: requestDefinition(document) as never, quick: true, strict: true }).init()

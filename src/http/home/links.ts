// The paths that the page at `/` links to.
import { operations } from '../../contract/operations.gen.ts'
import { documentationPath } from '../docs/page.ts'

/** In a browser, this path shows the login page. */
export const signInPath = operations.getSession.path

/** The paths by their key in the JSON document. */
export const links = {
  documentation: documentationPath,
  sign_in: signInPath,
  openapi_json: '/api/admin/openapi.json',
  openapi_yaml: '/api/admin/openapi.yaml',
  postman_collection: operations.getPostmanCollection.path,
  problem_codes: `${documentationPath}/errors`,
  health: operations.getHealth.path,
  readiness: operations.getReadiness.path,
}

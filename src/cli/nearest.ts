/** Which words somebody may have meant, for the verbs. */
export { nearest } from '../core/suggestion.ts'

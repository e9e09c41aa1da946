/** The prefix of everything that this runtime adds to the protocol: extension ids and keys of `_meta`. */
export const NS = 'dev.vivarium'

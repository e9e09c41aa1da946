/** `vivarium/conformance`: judges servers, clients and hosts. */
export {}

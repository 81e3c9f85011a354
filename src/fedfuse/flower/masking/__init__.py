"""Masks for secure sums: parties agree on them in pairs, so that they cancel in the sum and nowhere else.

The protocol is SecAgg+ (Bell et al., CCS 2020), which is that of Bonawitz et al. (CCS 2017) among neighbours:

    keys      every party makes two new key pairs, for masks and for shares, and sends the public halves
    shares    every party is told its neighbours' public keys, draws the seed of a mask of its own, and cuts the seed
              and the secret half of its mask key into shares (Shamir), one for each neighbour, sealed for it alone
    train     with its task every party gets the shares for it, and answers with its summand plus its own mask, plus
              (or, towards smaller numbers, minus) a mask for each neighbour, from the key that the two have in common
    opening   who is in the sum is told; every party of it gives its shares of the seeds of those who are, and of the
              mask keys of those who are not. So the server computes what does not cancel, and takes it away

The server never gets shares of both secrets of one party from anybody, and everything is new in every attempt of a
round. docs/secure-sums.md says what that protects from, and from what it does not.
"""

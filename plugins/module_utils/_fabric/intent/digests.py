# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of the vendor's images, as its page "NVIDIA Network Operator Container Images" of each release lists them.

They are those of images for all architectures. Of the newest release only a part of the page is known here. A digest
that is not in this table can be given in a file: the list of images then has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .releases import LINES

# Release -> image -> digest without its algorithm. Tags are those of the release.
_OF_RELEASE: dict[str, dict[str, str]] = {
    "25.10.0": {
        "network-operator": "8d3a075b6672c8375b33a84773027047a290f57f88903fd8040d87a36e8fdcae",
        "network-operator-init-container": "8990b7fabb164d5c369964bca8bd0424acd6227d2cc8f0cbfc23b2e3cc732c8b",
        "k8s-rdma-shared-dev-plugin": "78f01edc4cc6f5f1282b5e4bf0a0d0291ee97c1bdb372616daa5367e1070269e",
        "ib-kubernetes": "da161f6694fb5134948e8ffc47ebc556c8fdbdb4cb83be1dc6c9a2276b671c03",
        "ipoib-cni": "8567594bb1570383f5b68c9e9ce814bc34dd0f1d8df60a89c44105cf476a8ff0",
        "nvidia-k8s-ipam": "f3618a6bf879057dd3e63ae0bef5bad3fecc5f5548430cf5aa8745287c71e063",
        "nic-feature-discovery": "7573a7a063ee4bfbaa5b8e3517e655da5fa5472e2c9bf96a4d45469718416531",
        "sriov-network-operator": "9176748070a760485f300a428bcd70411ab9c0472088ff7650a0f30a70130dda",
        "sriov-network-operator-webhook": "3643963e1257467078ecf5e3aa6b52c21e0a65c0b6976f5d060693e2ee941eee",
        "sriov-network-operator-config-daemon": "1a2ea145ce4c1a9df7c29ddfa3899bc4a89ae00f74d59fa4a48fb1e25ca81563",
        "sriov-network-device-plugin": "16230372aa23ae025f7b5fa5ac092bbf58c8040bf66e162f7977469ba7322bcc",
        "sriov-cni": "709c4db39ffaf02250fc3ec2920e9c3714e8f6a942693f769b1b45b6f43dfa4e",
        "ib-sriov-cni": "5eceefa0522213dc58b7b73ee5d02a538c78405f36a86f070bdf1438d01126e3",
        "plugins": "d37a11d7ba9b3e9b2a2fd6faf5bc717ca6f0e6202659a7137a8fcf231cc17b9e",
        "multus-cni": "b78a227bba45163f7bebd3b67c6f67aa55fabf9cdfe0d6ac2f75e0ae9da23e05",
        "ovs-cni-plugin": "e3390b9aa40d1a703d6768bd4256a30c24e8ffb42d479a8eb4c3e3f122e198c0",
        "rdma-cni": "5eeda9882d9ad4e7ed23a9dd82e0f9ba90caf858a8efef6299ed0fd114cb59a0",
        "nic-configuration-operator": "25fbecba5fa2c588007c85fbffdedf4b734c36774824da1598ab063e0e9a9685",
        "nic-configuration-operator-daemon": "efef0cd39324058f23cfeda561d4c23063f260905c35a0a29d5a246bec091341",
        "maintenance-operator": "9f6d1db428f3d3c5e009158a4db9f403d5d1bbf7678491aeaefdfb6f750b9b77",
    },
    "26.1.2": {
        "network-operator": "9d9d560796e3cddd9c9bc1caa2dbf2cb82415d4a4460c79fbb7c010942db5623",
        "network-operator-init-container": "880e992f99fe034c412b2bdf198c4c76c2e154f84764e7bfac9da97021ddfcaa",
        "k8s-rdma-shared-dev-plugin": "a2ea9cb60f1ce50d109650daca7e074b38cb9ac6a88bed78e266ef99c012782e",
        "ib-kubernetes": "143112aaa5d6fb784c35bbd141745b4266aee5b8ca7b855f9be76ff1f49b9e39",
        "ipoib-cni": "f45f2cfe4c6cec38e08d7f23391130e0296b328dcdee0e4b99a77f06fbfb13f4",
        "nvidia-k8s-ipam": "6e04e5d39ba004d208c2fdd7d4dab373295f5e3f401f70692b3e15a2fe309a5f",
        "nic-feature-discovery": "0b096999cd4093c8e70d303b2d0c0344334d2b75fea3543f285a4c648700b198",
        "sriov-network-operator": "f4e0ac8aa7677c555b5585ebbe0e59830385ed64e67d809c7fa075ab9fba0448",
        "sriov-network-operator-webhook": "29e4984a7b81f979642197d90c1aa23b567ac4e664e1d7a147fed67f555602c8",
        "sriov-network-operator-config-daemon": "e5db8309ea80ec4cab1c409fb2bf22faf2054679e263f3ef42c7a5862eb43f15",
        "sriov-network-device-plugin": "b96f587afdbdccc20f4f497c4a7de1998e37479890a268289ebc39b9a0b09d65",
        "sriov-cni": "6ef5de496b7a441d026fb529f71e741d8bfc67ef4932f925abb4857469d37d12",
        "ib-sriov-cni": "b7ee9de7f3ccb8e260b6268bc6a32c2817f28919bb9b62f2b4c0ca006e4e8e4c",
        "plugins": "8f3e3a935c43d56d2c14d6c2baaeb48478907722237afa0b2adc6f64f2438164",
        "multus-cni": "b2529774cef6dd30a5b2ba09124f880e7b0e6d88a4e40f0b94156c43b12afef2",
        "ovs-cni-plugin": "90e741c4a4950df1cc5949bdf7ea4d0809dcaa2d3047c56ac4865118fde8d7f5",
        "rdma-cni": "12bf7ade1bc7a6006ff4b785a34ed58f6ca9cd57982deaaa638392942d0c1b4b",
        "nic-configuration-operator": "abb744df698fd96b3b3ac394535f876fb6e109cb94bcc0180ece08704a2f3053",
        "nic-configuration-operator-daemon": "f5ae2b9b182962c3c08acf4003ff01aecfe69e39d76b9a7368f97c9a9ae1d77d",
        "maintenance-operator": "36414b6ea6948f93487e732080d8801c5653186ed4028bbd25522a0cab2325a2",
    },
    "26.4.1": {
        "network-operator": "49d8bd43fa4559468ec93a4c52053aaf7f36861d9f802ffe8fd3aa94266f82de",
        "network-operator-init-container": "922217cee504f080b2a76c51ec5d17baa562ffe2447bb1e370c01a6b26a7059f",
        "k8s-rdma-shared-dev-plugin": "464970d3197fe982b779c48cce74d90f7563ede5daef834bf169db39ee4541c7",
        "ib-kubernetes": "b103b0a36693d6ab1a25ca65f6cc058bfb5819b9d11a8f0638ae7f1c832273d1",
        "ipoib-cni": "e5eb2d3c746a06a44bad7e8e451ff7a4d14251b1a254f9a411f17dd529c41f0f",
        "nvidia-k8s-ipam": "88db2fa65846d68d9c4ec996de0ecf4839b79e02e5643eb9ad3354d448cb2757",
        "nic-feature-discovery": "2599a0d512af2f92c1fa6ac7536d657463219d64bb1369156644ab1b150b672f",
        "sriov-network-operator": "d631df0a88e9088b6196d4db258644085df052b04f2db6b06dc9c8ba93de9866",
        "sriov-network-operator-webhook": "b4410df7cc3961fd7e059d8ca419e9f8bebdcb74359a910ccc843dfd69b30c9c",
        "sriov-network-operator-config-daemon": "96e50e3f5d754ac33bb0a8000ce317d15df4abc8d6a74660900f02e8f2b2b7f4",
        "sriov-network-device-plugin": "c24d0993feb97c0a1952bf30ab51f7452dc57d5846684e481aaa4455cd56e1aa",
        "sriov-cni": "9d627407b27ff817152e1c0d1d26d60a49b8cc9d8e54f9ad28d0b8fe4f017b35",
        "ib-sriov-cni": "ed91dfb15d5da90d9fad623ea0472a9c65c5404e528aabbb56fb3aff2ee50925",
        "dra-driver-sriov": "ff43dae772403fa5f8988fa0a0e81544e8e000bc467b1610333b0fffc89469bc",
        "plugins": "7d96a2f3a4009f29c6cd799cd9c3abc90b4a850e278c0bfadc1e0a454767689c",
        "multus-cni": "27e5fc5349625fd6d354230513e936973a3a28b8b30f3203758965ec21f55c77",
        "ovs-cni-plugin": "d86c29504c0a4ff4bd2e4124c81f046d851cfd541091ec5c0264e83cb3c206fe",
        "rdma-cni": "03f9845060c952c78208365536d1d08d3ea7955309f7ce5b2c350090f66309a4",
        "nic-configuration-operator": "b5e9733a01ba6031ecbf71024a98ad02b9052d11a10d3df62daf75135a07ba9b",
        "nic-configuration-operator-daemon": "ff80af3402473fba6251f36f924ddc50341f954980bfba919cae70925e644318",
        "maintenance-operator": "cfd6cd87f077c1879d4c4e9a6de146c7200afe6b25b340c803a2f9a2ceb8d910",
    },
    "26.7.0": {
        "network-operator": "7647afe6b48137de7574f5aff0fd06b52f169c1c02f3a3c1a56948185ec5bd4e",
        "network-operator-init-container": "916e812d0db507a01e5d093d23ce25544dd53e3d3dc5349ca0cd81c05f10d5b6",
        "k8s-rdma-shared-dev-plugin": "2d28133fdee8c263e19b4d0656bf58d30513c9d13e47ef84bd68c5499b3c18ce",
        "ib-kubernetes": "9770dc01185e0c9e1e6a600af2eccab5756985fbf665f553845c5a9e67dac84e",
        "ipoib-cni": "538c30c540c3bc69a95c44da8f7048aedaae39a61fa73a0c20a390942510cac4",
        "nvidia-k8s-ipam": "9f80b77238e67229b3849b803d076e6b4c8d3514c428d8fa8ab46769932e1785",
        "nic-feature-discovery": "c17e530aba4fa28c0403de72fd3b5b05638e8aa74f456d53527df89b2f4a6a52",
        "sriov-network-operator": "cd83fa929f18e34f5324ec8e3d8d454fe520997e8b477fc16d1eb72dd1b8df20",
        "sriov-network-operator-webhook": "4efd27eb7203373240eee566977a49c0c6751ad29f80589f34f2f7e44cc5b3b1",
        "sriov-network-operator-config-daemon": "a6d46f173e6ce9484d3d51ca112f1719f7bb959404329c98ea285a0c76d17697",
        "sriov-network-device-plugin": "36367997ead028a1713d46ac3f0552e2cae4349b3c070d03a2d0d31e3c620ac5",
        "sriov-cni": "da9ed046056867d7d149ecf2da0a752ec315e2000f88c1c7f437d921d1db9968",
        "ib-sriov-cni": "dd09ce0b52d26e9484e4cf92a818a0b66a323633d11111c5109bdd30c0a155c4",
        "dra-driver-sriov": "f8b00465362f05019bfbe41cb431c1a59efb3e9c5a756ac35b730dab679ce629",
        "plugins": "ae947249ab1fcad77464fbbbd12c851ae905872f76ef4dda3a5944a32b3a2dc1",
        "multus-cni": "2c9761eea72bb1ac06e288ee1982b835e8ee9e93d141a6436c3fa8d559be4163",
        "ovs-cni-plugin": "a5c0fcaff6a8a3be71707e86600064023336cab036c91477b5184d403761d286",
        "rdma-cni": "d3235d1f7be1fe825f23feddd714bc44acd0bad305ca598b365cd134f14ae28e",
        "nic-configuration-operator": "c1cf537dfcf1b7e80cfcbc8e0c0c81a417202a8cfb79c0a60f0350165dd01843",
        "nic-configuration-operator-daemon": "84c144425685560bd5855166d78a541c65fa3a83196fa3d2171ef7efa3a202d6",
        "maintenance-operator": "581cfecb65f7b2b63f21b4ba1eb907cb3617bb9b066d4336f56ece2a86d224ec",
    },
    "26.7.1": {
        "network-operator": "972fbdbad2d2b8bb1f9c332cf7c84222de722210531ead31971a30f370e422f0",
        "network-operator-init-container": "5a881cf3ea2905b10b8b1bf232c3adacf02a441d35742ecc1cf1d60abec4b86b",
        "k8s-rdma-shared-dev-plugin": "842b3816c66623cef061daf9d904c411085c525898e8b95777e531d77b3a7b4e",
        "ib-kubernetes": "e2169292307db5230acfd340e8944db534059c97299fbb0859f4e9debcb2e12a",
        "ipoib-cni": "fe3a0d5253e3c953fa627b5e585118ab2f649f0dbc5cae9eab13b80b7a78400c",
        "nvidia-k8s-ipam": "f4012b9c5ee18603def8e842c58861b2524c8da5a946ec9c3e5957de7395a22c",
        "nic-feature-discovery": "52ff9b1923736f8765c5dc4630bd97f95845db452487943177af27dab387141c",
        "sriov-network-operator": "c1f760cc35c7df9bcb4053a2630489ac32080e901ed065787d8d39715b006844",
    },
}
# Of images with tags of their own: tag -> digest.
_TELEMETRY = {
    "1.22.5-doca3.1.0-host": "f0d3c4a00616343e74e465e259a7475d69920a8dbff530117253cb1939e366f6",
    "1.23.4-doca3.2.0-host": "b628647c87715087888a687bc86887eb9675566558d863b4e43f227cf649f83b",
    "1.25.5-doca3.4.0-host": "e728430bdde27bc0f2e57cedb83814f21d23113385328034af9727e900724d09",
    "1.26.5-doca3.5.0-host": "3ec2bb66428e5a6c7137ed9680c03dba03618b03521d92bdcbdb2d7e2e53e029",
}
_OPERATOR, _TELEMETRY_IMAGE = "network-operator", "doca_telemetry"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_NAME = r"[A-Za-z0-9][A-Za-z0-9.:_-]*(?:/[A-Za-z0-9._-]+)+"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_REFERENCE = re.compile(rf"({_NAME}):({_TAG})", re.ASCII)
_ROW = re.compile(rf"({_NAME})\s+([A-Za-z0-9._/-]+)\s+({_TAG})", re.ASCII)


def known() -> dict[str, str]:
    """Return image with registry and tag -> digest, of the releases of all lines."""
    found: dict[str, str] = {}
    for line in LINES.values():
        for release in line.releases:
            for image, digest in _OF_RELEASE.get(release, {}).items():
                operator = image == _OPERATOR
                registry = line.operator_registry(release) if operator else line.publisher(image, release)
                tag = f"v{release}" if operator else f"network-operator-v{release}"
                found[f"{registry}/{image}:{tag}"] = f"sha256:{digest}"
            registry = line.publisher(_TELEMETRY_IMAGE, release)
            found.update({f"{registry}/{_TELEMETRY_IMAGE}:{tag}": f"sha256:{own}" for tag, own in _TELEMETRY.items()})
    return found


def parsed(text: str) -> dict[str, str]:
    """Return image with registry and tag -> digest of a text: rows of the vendor's page, or references with a digest.

    Of each line the first image and the first digest count. Lines without either are headings, or anything else.
    """
    return dict(_entries(text))


def _entries(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        digest = _DIGEST.search(line)
        if not digest:
            continue
        before = line[: digest.start()].replace("|", " ").strip().rstrip("@ ")
        reference, row = _REFERENCE.search(before), _ROW.search(before)
        if row:
            yield f"{row[1]}/{row[2]}:{row[3]}", digest[0]
        elif reference:
            yield f"{reference[1]}:{reference[2]}", digest[0]


def with_digest(image: str, digests: Mapping[str, str]) -> str:
    """Return an image with its digest, where it has a tag and the digest is known."""
    return f"{image}@{digests[image]}" if image in digests else image
